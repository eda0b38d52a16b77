# The .deb, by CPack: programs, service, license, changelog; for the release of Debian or Ubuntu that builds it, whose libraries
# it needs. deploy/deb.sh builds it. The component `service` is what only the package has: `cmake --install` leaves it out.
if(NOT PROJECT_IS_TOP_LEVEL OR NOT ENCODERD_SERVER)
  return()
endif()

# Both also come with `cmake --install`; the package has the license in its own place.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/encoderd COMPONENT license)
if(NOT CMAKE_CROSSCOMPILING)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
  set(completion ${PROJECT_BINARY_DIR}/package/completion)
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:encoderctl>\" completion bash OUTPUT_FILE \"${completion}\"
    COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${completion} DESTINATION share/bash-completion/completions RENAME encoderctl)
endif()

if(NOT EXISTS /etc/debian_version)
  return()
endif()
set(files ${PROJECT_SOURCE_DIR}/deploy/package/debian)

# Below another prefix the unit would name a program and a file that are elsewhere.
install(CODE "if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
  message(FATAL_ERROR \"the component service is for /usr alone, not \${CMAKE_INSTALL_PREFIX}: its unit names /usr/bin/encoderd and \"
    \"/etc/encoderd; add --prefix /usr, or install the Debian package (deploy/deb.sh)\")
endif()" COMPONENT service EXCLUDE_FROM_ALL)

# What is compiled in comes with its license, too. A build needs no such file, the package does.
file(READ ${PROJECT_SOURCE_DIR}/LICENSE copyright)
file(STRINGS ${PROJECT_SOURCE_DIR}/deploy/package/built-in.txt packages REGEX "^[^#]")
foreach(package IN LISTS packages)
  set(file /usr/share/doc/${package}/copyright)
  if(EXISTS ${file})
    file(READ ${file} text)
    string(APPEND copyright "\n\nCompiled in, of the package ${package}:\n\n${text}")
  else()
    install(CODE "message(FATAL_ERROR \"${file}, the license of what is compiled in, does not exist: install ${package}\")"
      COMPONENT service EXCLUDE_FROM_ALL)
  endif()
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/package/copyright "${copyright}")

# Compressed, as Debian has it, and without the time of the build.
set(changelog ${PROJECT_BINARY_DIR}/package/changelog.gz)
install(CODE "execute_process(COMMAND gzip -9nc \"${PROJECT_SOURCE_DIR}/CHANGELOG.md\" OUTPUT_FILE \"${changelog}\"
  COMMAND_ERROR_IS_FATAL ANY)" COMPONENT service EXCLUDE_FROM_ALL)

install(FILES ${PROJECT_BINARY_DIR}/package/copyright ${changelog} DESTINATION share/doc/encoderd COMPONENT service
  EXCLUDE_FROM_ALL)
install(FILES ${files}/encoderd.service DESTINATION lib/systemd/system COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${files}/encoderd.flags DESTINATION /etc/encoderd COMPONENT service EXCLUDE_FROM_ALL)

set(release "")
foreach(key IN ITEMS ID VERSION_ID)  # debian, 12
  file(STRINGS /etc/os-release line REGEX "^${key}=")
  string(REGEX REPLACE "^${key}=|\"" "" line "${line}")
  string(APPEND release "${line}")
endforeach()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME encoderd)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "The server encoderd, the command line encoderctl, and a service for systemd.
The service is not started before /etc/encoderd/encoderd.flags names a model.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};encoderd;Unspecified;/" "${PROJECT_BINARY_DIR};encoderd;service;/")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# With the commit's date apt takes a later build of one version for an upgrade: 1+git20261128193511~debian12. Not where the
# sources come without git, which have none.
encoderd_commit_date(date)
if(date)
  string(PREPEND date "+git")
endif()
set(CPACK_DEBIAN_PACKAGE_RELEASE "1${date}~${release}")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The authors of encoderd")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)  # whom --otlp_endpoint=https://... and encoderctl --tls trust
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${files}/conffiles ${files}/postinst ${files}/prerm ${files}/postrm)
include(CPack)
