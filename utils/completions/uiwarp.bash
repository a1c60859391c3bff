# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Completion of uiwarp(1) for bash. The options are those of --help (buildlib/check-completions).

# The options of a command.
_uiwarp_options() {
  case $1 in
    run) echo '--as --check --faults --shake --trace --help' ;;
    devices) echo '--json --help' ;;
    doctor) echo '--json --help' ;;
    enable) echo '--force --help' ;;
    disable) echo '--help' ;;
    settings) echo '--markdown --help' ;;
    explain) echo '--json --markdown --help' ;;
    faults) echo '--off --json --explain --list --markdown --help' ;;
    shake) echo '--runs --from --timeout --why --help' ;;
    netns-pair) echo '--port --wait --grace --as --faults --shake --trace --check --mtu --help' ;;
    trace) echo '--json --perfetto --pcap --html --help' ;;
    stat) echo '--json --prometheus --watch --help' ;;
    *) echo 'run devices doctor enable disable settings explain faults shake netns-pair trace stat --help --version' ;;
  esac
}

# What `uiwarp explain` knows by a name.
_uiwarp_explained() {
  "$1" explain 2>/dev/null | grep -oE '^  .*' | grep -vE '^  0x'
}

# The processes that `uiwarp stat` shows.
_uiwarp_processes() {
  "$1" stat --json 2>/dev/null | grep -oE '"pid": ?[0-9]+' | grep -oE '[0-9]+'
}

# Where the program stands that a command runs, when the word at $COMP_CWORD is behind that or is it; else nothing.
_uiwarp_program() {
  local at start=0
  for ((at = 2; at <= COMP_CWORD; at++)); do
    case $command:${COMP_WORDS[at]} in
      run:--as | run:--faults | run:--shake | run:--trace) ((at++)) ;;
      run:--) start=$((at + 1)) ;;
      run:-* | run:=) ;;
      run:*) start=$at ;;
      shake:-- | netns-pair:--) start=$((at + 1)) ;;
    esac
    if ((start != 0)) && [ "$command" != netns-pair ]; then break; fi
  done
  if ((start != 0 && start <= COMP_CWORD)); then echo "$start"; fi
}

_uiwarp() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} program
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$(_uiwarp_options)" -- "$word")
    return
  fi
  program=$(_uiwarp_program)
  if [ -n "$program" ] && [ "$(type -t _command_offset)" = function ]; then
    _command_offset "$program"
  elif [ "$program" = "$COMP_CWORD" ]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$word")
  elif [ -n "$program" ]; then
    return  # a file, by "-o default"
  elif [ "$before" = --as ]; then
    mapfile -t COMPREPLY < <(compgen -W 'iwarp roce' -- "$word")
  elif [ "$before" = --faults ] || [ "$before" = --explain ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" faults --list 2>/dev/null | cut -d' ' -f1)" -- "$word"
      compgen -f -- "$word")
  elif [ "$command:$before" = run:--shake ]; then
    return  # a number
  elif [ "${word:0:1}" = - ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_uiwarp_options "$command")" -- "$word")
  elif [ "$command" = run ]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$word")
  elif [ "$command" = explain ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_uiwarp_explained "${COMP_WORDS[0]}")" -- "$word")
  elif [ "$command" = stat ] || [ "$command:$COMP_CWORD" = faults:2 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_uiwarp_processes "${COMP_WORDS[0]}")" -- "$word")
  fi
}

complete -o default -F _uiwarp uiwarp
