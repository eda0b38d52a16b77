# encoderd_git(OUT ARGUMENT...): what git says of the sources; empty, with a warning, where it fails. Their owner may be another
# user, as when root builds a package: their CMakeLists.txt runs in any case. What a hook of git exports names another repository.
function(encoderd_git out)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=GIT_DIR --unset=GIT_WORK_TREE --unset=GIT_INDEX_FILE
                          --unset=GIT_OBJECT_DIRECTORY TZ=UTC ${GIT_EXECUTABLE} -c safe.directory=* ${ARGN}
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} RESULT_VARIABLE failed
                  OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE error)
  if(failed)
    message(WARNING "git does not know the commit of these sources: ${error}")
    set(said "")
  endif()
  set(${out} "${said}" PARENT_SCOPE)
endfunction()

# encoderd_revision(OUT): the commit of the sources: ENCODERD_REVISION where that is given (a container has no .git), else
# what git says, else "unknown". CMake runs again after each commit.
function(encoderd_revision out)
  set(revision "${ENCODERD_REVISION}")
  if(NOT revision AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
    find_package(Git QUIET)
    if(Git_FOUND)
      encoderd_git(revision rev-parse HEAD)
    endif()
    if(revision)
      encoderd_git(commits rev-parse --git-path logs/HEAD)
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
      encoderd_git(date log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S)
    endif()
  endif()
  set(${out} "${date}" PARENT_SCOPE)
endfunction()
