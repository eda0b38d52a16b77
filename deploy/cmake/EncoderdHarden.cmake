# ENCODERD_HARDEN: what makes faults of programs that face a network harder to exploit: guards on the stack, frames that
# cannot pass over its guard page, marked targets of indirect jumps (for systems that check them), checked calls of the C library,
# and tables of functions that are read-only once the program runs. ON in the presets `release` and `package`, so in image,
# wheel and .deb. For all targets below; another project that links the client chooses for itself.
option(ENCODERD_HARDEN "Guards of stack and indirect jumps, _FORTIFY_SOURCE, read-only relocations" OFF)
if(NOT ENCODERD_HARDEN)
  return()
endif()
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>)
add_link_options(LINKER:-z,relro,-z,now)

# Not for every processor: -fcf-protection is x86's.
include(CheckCXXCompilerFlag)
foreach(option IN ITEMS -fstack-clash-protection -fcf-protection)
  string(MAKE_C_IDENTIFIER ENCODERD${option} known)
  check_cxx_compiler_flag(${option} ${known})
  if(${known})
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${option}>)
  endif()
endforeach()

# It needs optimization; Ubuntu's compiler and flags of distributions define it, perhaps another level. Level 3 also checks sizes that
# are known at run time only; older compilers warn of it in every file.
include(CheckCXXSymbolExists)
set(CMAKE_REQUIRED_FLAGS -O2)
check_cxx_symbol_exists(_FORTIFY_SOURCE features.h ENCODERD_FORTIFIED)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT ENCODERD_FORTIFIED)
  set(level 3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(level 2)
  endif()
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-D_FORTIFY_SOURCE=${level}>)
endif()
