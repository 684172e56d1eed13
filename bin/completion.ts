// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the shell expands them.
import type { Command } from 'commander'

/** The words that may follow each command, with the options of the last one, as `bash` completes them. */
export function completionScript(program: Command): string {
  const words = new Map<string, readonly string[]>()
  const visit = (command: Command, path: string): void => {
    const options = command.options.map(({ long }) => long ?? '').filter(Boolean)
    words.set(path, [...command.commands.map(child => child.name()), ...options])
    for (const child of command.commands) visit(child, path === '' ? child.name() : `${path} ${child.name()}`)
  }
  visit(program, '')
  const quoted = (text: string): string => JSON.stringify(text)
  const cases = [...words].map(([path, next]) => `    ${quoted(path)}) words=${quoted(next.join(' '))} ;;`)
  return [
    '# Completion of strowger for bash: source <(strowger completion)',
    '_strowger() {',
    '  local path="" word words=""',
    '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
    '    case "$word" in -*) ;; *) path="${path:+$path }$word" ;; esac',
    '  done',
    '  case "$path" in',
    ...cases,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    'complete -F _strowger strowger bin/strowger',
    '',
  ].join('\n')
}
