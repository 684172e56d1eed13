import { readFileSync } from 'node:fs'
import { Command, Option } from 'commander'
import { readRates } from '../core/domain/rating/import.ts'
import { iso } from '../core/runtime/clock.ts'
import { StartRefused } from '../core/runtime/lifecycle.ts'
import { importPriceBook } from '../core/state/rates.ts'
import { ring, withState } from './state.ts'

interface ImportOptions {
  readonly name?: string
  readonly direction: 'outbound' | 'inbound'
  readonly project?: string
  readonly from?: string
}

export function ratesCommand(): Command {
  const command = new Command('rates').description('sell rates')
  command
    .command('import')
    .description('read a rate list (CSV: prefix,label,rate,unit,initial,additional) into a new price book')
    .argument('<file>')
    .option('--name <name>', 'of the price book; else the name of the file')
    .addOption(new Option('--direction <direction>').choices(['outbound', 'inbound']).default('outbound'))
    .option('--project <id>', 'for one project; else for every project without its own')
    .option('--from <time>', 'in force from (ISO 8601); else from now')
    .action((file: string, options: ImportOptions) =>
      withState(async (state, config) => {
        const { rates, problems } = readRates(read(file))
        for (const { line, message } of problems) process.stderr.write(`${file}:${line}: ${message}\n`)
        if (problems.length > 0) throw new StartRefused(`${file} was not imported: mend the lines above`)
        const now = iso(Date.now())
        const effective_from = options.from === undefined ? now : instant(options.from)
        const { direction, project = null, name = file } = options
        const book = await importPriceBook(
          state,
          { project_id: project, name, direction, currency: 'NGN', effective_from, created_at: now },
          rates,
        )
        await ring(config, 'configuration', book.id)
        process.stdout.write(`${book.id}: ${rates.length} rates, in force from ${effective_from}\n`)
      }),
    )
  return command
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new StartRefused(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

function instant(text: string): string {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new StartRefused(`--from ${text}: expected a time such as 2026-12-01T00:00:00Z`)
  return iso(ms)
}
