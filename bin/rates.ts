import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { Command, Option } from 'commander'
import { CURRENCY } from '../core/domain/rating/currency.ts'
import {
  changesNothing,
  describeRatePlan,
  type ImportedRate,
  planRates,
  readRates,
} from '../core/domain/rating/index.ts'
import { iso } from '../core/runtime/clock.ts'
import { StartRefused } from '../core/runtime/lifecycle.ts'
import type { State } from '../core/state/index.ts'
import { effectivePriceBook, importPriceBook, listRates } from '../core/state/money/rates.ts'
import { ring, withState } from './state.ts'

interface ImportOptions {
  readonly name?: string
  readonly direction: 'outbound' | 'inbound'
  readonly project?: string
  readonly from?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
}

/** The most lines of each kind to show of a difference. The rest is only counted. */
const SHOWN = 20

export function ratesCommand(): Command {
  const command = new Command('rates').description('sell rates')
  command
    .command('import')
    .description(
      'read a rate list (CSV: prefix,label,rate,unit,initial,additional) into a new price book, whole or not at all; ' +
        'shows first what changes against the prices in force, and on a terminal asks',
    )
    .argument('<file>')
    .option('--name <name>', 'of the price book; else the name of the file')
    .addOption(new Option('--direction <direction>').choices(['outbound', 'inbound']).default('outbound'))
    .option('--project <id>', 'for one project; else for every project without its own')
    .option('--from <time>', 'in force from (ISO 8601); else from now')
    .option('--dry-run', 'show what changes, and import nothing')
    .option('--yes', 'do not ask')
    .action((file: string, options: ImportOptions) =>
      withState(async (state, config) => {
        const { rates, problems } = readRates(read(file))
        for (const { line, message } of problems) process.stderr.write(`${file}:${line}: ${message}\n`)
        if (problems.length > 0) throw new StartRefused(`${file} was not imported: mend the lines above`)
        const now = iso(Date.now())
        const effective_from = options.from === undefined ? now : instant(options.from)
        const { direction, project = null, name = file } = options
        const book = {
          project_id: project,
          name,
          direction,
          currency: CURRENCY,
          effective_from,
          created_at: now,
        } as const
        if (!(await showChanges(state, book, rates)) || options.dryRun === true) return
        if (options.yes !== true && !(await confirmed())) {
          process.stdout.write('nothing was imported\n')
          return
        }
        const { id } = await importPriceBook(state, book, rates)
        await ring(config, 'configuration')
        process.stdout.write(`${id}: ${rates.length} rates, in force from ${effective_from}\n`)
      }),
    )
  return command
}

/** Prints what a list changes against the prices in force at its start. Returns false when nothing changes. */
async function showChanges(
  state: State,
  { project_id, direction, effective_from }: Omit<Parameters<typeof importPriceBook>[1], 'name'>,
  rates: readonly ImportedRate[],
): Promise<boolean> {
  const book = await effectivePriceBook(state.db, project_id, direction, effective_from)
  const plan = planRates(book ? await listRates(state.db, book.id) : [], rates)
  const against = book ? `${book.name} (${book.id}), in force since ${book.effective_from}` : 'no prices'
  process.stdout.write(`against ${against}:\n`)
  for (const line of describeRatePlan(plan, SHOWN)) process.stdout.write(`${line}\n`)
  if (!changesNothing(plan)) return true
  process.stdout.write('nothing changes\n')
  return false
}

/** Asks for confirmation on a terminal. A program's options are its confirmation. */
async function confirmed(): Promise<boolean> {
  if (!process.stdin.isTTY) return true
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return /^y(es)?$/i.test((await terminal.question('import? [y/N] ')).trim())
  } finally {
    terminal.close()
  }
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
