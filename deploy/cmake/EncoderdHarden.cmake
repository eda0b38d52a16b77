# ENCODERD_HARDEN: what makes faults of programs that face a network harder to exploit: guards on the stack, checked calls
# of the C library, and tables of functions that are read-only once the program runs. ON in the presets `release` and
# `package`, so in image, wheel and .deb. For all targets below; another project that links the client chooses for itself.
option(ENCODERD_HARDEN "Stack protector, _FORTIFY_SOURCE, read-only relocations" OFF)
if(NOT ENCODERD_HARDEN)
  return()
endif()
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>)
add_link_options(LINKER:-z,relro,-z,now)

# It needs optimization; Ubuntu's compiler and flags of distributions define it, perhaps a higher level.
include(CheckCXXSymbolExists)
set(CMAKE_REQUIRED_FLAGS -O2)
check_cxx_symbol_exists(_FORTIFY_SOURCE features.h ENCODERD_FORTIFIED)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT ENCODERD_FORTIFIED)
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-D_FORTIFY_SOURCE=2>)
endif()
