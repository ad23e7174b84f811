// The scripts pass the typed words to `islet __complete`. It prints one suggestion per line, with a tab before the
// summary, or the single line `:files` if the shell should offer files.

const BASH = `# islet completion install bash
_islet() {
  local words out line
  words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  out=$(islet __complete -- "\${words[@]}" 2>/dev/null) || return
  if [ "$out" = ':files' ]; then compopt -o default; COMPREPLY=(); return; fi
  COMPREPLY=()
  while IFS= read -r line; do
    [ -z "$line" ] || COMPREPLY+=("$(printf '%q' "\${line%%$'\\t'*}")")
  done <<< "$out"
}
complete -F _islet islet
`

const ZSH = `#compdef islet
# islet completion install zsh
_islet() {
  local -a lines described
  local line
  lines=("\${(@f)$(islet __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "$lines[1]" == ':files' ]]; then _files; return; fi
  for line in $lines; do
    [[ -n "$line" ]] && described+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe islet described
}
if [[ "$funcstack[1]" == _islet ]]; then _islet "$@"; else compdef _islet islet; fi
`

const FISH = `# islet completion install fish
function __islet_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l out (islet __complete -- $words[2..-1] 2>/dev/null)
  if test "$out" = ':files'
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $out
  end
end
complete -c islet -f -a '(__islet_complete)'
`

export const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const
export type Shell = keyof typeof SCRIPTS
