import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { counted } from '../core/domain/text/counted.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { type Difference, replay } from '../markup/replay/replay.ts'
import { presentConfig } from './installation.ts'
import { orSayWhy } from './say.ts'
import { fail, give, tell } from './terminal.ts'

/** The command `strowger replay CA…|FILE`, which runs the scripts of a finished call again from their logs. */
export function replayCommand(): Command {
  return new Command('replay')
    .argument('<call>', 'CallSid of a finished call, or the file of a run log')
    .option('--json', 'as JSON, a line for each log')
    .action((call: string, { json }: { readonly json?: true }) =>
      orSayWhy(async () => {
        for (const file of logsOf(call)) {
          const result = replay(readFileSync(file, 'utf8'))
          if (json) give(`${JSON.stringify({ file, ...result })}\n`)
          else
            tell(
              `${file}: ${result.same ? `same, ${counted(result.steps, 'step')}` : differenceText(result.difference)}\n`,
            )
          if (!result.same) fail()
        }
      }),
    )
}

/** Returns the logs of a call's scripts (its own, whispers and waits) in the order in which they began. */
function logsOf(call: string): string[] {
  if (existsSync(call)) return [call]
  if (!/^CA[0-9a-f]{4,32}$/.test(call)) throw new StartRefused(`there is no file ${call}, and it is no CallSid`)
  const folder = join(presentConfig().data_dir, 'runs')
  const names = existsSync(folder) ? readdirSync(folder).filter(name => name.startsWith(call)) : []
  const calls = new Set(names.map(name => name.slice(0, 34)))
  if (calls.size > 1) throw new StartRefused(`several calls begin with ${call}: type more of it`)
  if (names.length === 0) throw new StartRefused(`no run of ${call} is logged in ${folder}`)
  return names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).map(name => join(folder, name))
}

function differenceText({ line, event, command, logged, replayed, detail }: Difference): string {
  const where = command === null ? `line ${line}` : `line ${line} (${event}), command ${command + 1}`
  const shown = (text: string | null): string => (text === null ? 'nothing' : text.slice(0, 2000))
  const both = command === null ? '' : `\n  logged:   ${shown(logged)}\n  replayed: ${shown(replayed)}`
  return `differs at ${where}: ${detail}${both}`
}
