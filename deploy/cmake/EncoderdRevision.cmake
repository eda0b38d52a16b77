# encoderd_revision(OUT): the commit of the sources: ENCODERD_REVISION where that is given (a container has no .git), else
# what git says, else "unknown". CMake runs again after each commit.
function(encoderd_revision out)
  set(revision "${ENCODERD_REVISION}")
  if(NOT revision AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
    find_package(Git QUIET)
    if(Git_FOUND)
      execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                      OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                      OUTPUT_VARIABLE commits OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      get_filename_component(commits "${commits}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
      if(EXISTS ${commits})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${commits})
      endif()
    endif()
  endif()
  if(NOT revision)
    set(revision unknown)
  endif()
  set(${out} "${revision}" PARENT_SCOPE)
endfunction()

# encoderd_commit_date(OUT): when the commit was made, as 20261128193511 (UTC); empty for sources that come without git.
function(encoderd_commit_date out)
  set(date "")
  if(EXISTS ${PROJECT_SOURCE_DIR}/.git)
    find_package(Git QUIET)
    if(Git_FOUND)
      execute_process(COMMAND ${CMAKE_COMMAND} -E env TZ=UTC ${GIT_EXECUTABLE} log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S
                      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endif()
  set(${out} "${date}" PARENT_SCOPE)
endfunction()
