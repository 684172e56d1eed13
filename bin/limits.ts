import { Argument, Command, InvalidArgumentError } from 'commander'
import { findCountry } from '../core/domain/numbers/countries.ts'
import { DEFAULT_COUNTRY } from '../core/domain/numbers/default-country.ts'
import { parseNumber } from '../core/domain/numbers/parse.ts'
import { iso } from '../core/runtime/clock.ts'
import { print } from './operator-print.ts'
import { ask } from './operator-route.ts'
import { tell } from './terminal.ts'

interface Json {
  readonly json?: boolean
}

const LEVELS = ['project', 'subaccount', 'trunk', 'subtrunk', 'policy'] as const

/** Sets the number formats of trunks and short codes, and shows and corrects what ceilings count. */
export function limitsCommand(): Command {
  const command = new Command('limits')
  command
    .command('trunk')
    .description('the number format of a trunk, and its default caller')
    .argument('<trunk_id>')
    .option('--country <iso>', 'whose national formats are understood', country)
    .option('--default-caller <number>', 'a number of the project, or none')
    .option('--json', 'as JSON')
    .action(async (trunk_id: string, options: Json & { country?: string; defaultCaller?: string }) => {
      const { country, defaultCaller } = options
      const body = {
        ...(country === undefined ? {} : { country }),
        ...(defaultCaller === undefined ? {} : { default_caller: defaultCaller === 'none' ? null : defaultCaller }),
      }
      const params = { trunk_id }
      const asks = Object.keys(body).length > 0
      print(
        asks
          ? await ask('patch /trunks/{trunk_id}/number-format', { params, body })
          : await ask('get /trunks/{trunk_id}/number-format', { params }),
        options,
      )
    })
  command
    .command('short-code')
    .description('route an emergency or short code to a number; without a number, remove the route')
    .argument('<code>', 'two to six digits', shortCode)
    .argument('[number]', 'in E.164', e164)
    .option('--project <id>', 'for one project; else for every project')
    .option('--json', 'as JSON')
    .action(async (code: string, sends_to: string | undefined, options: Json & { project?: string }) => {
      const body = { code, sends_to: sends_to ?? null, project_id: options.project ?? null }
      await ask('put /short-codes', { body })
      const { data } = await ask('get /short-codes')
      print(data, options)
    })
  for (const add of [addHolders, addRecount]) add(command)
  return command
}

function addHolders(command: Command): void {
  command
    .command('holders')
    .description('which calls held the slots of a ceiling at a second of the last 30 days')
    .addArgument(new Argument('<level>').choices(LEVELS))
    .argument('<id>', 'of the project, subaccount, trunk, subtrunk or policy')
    .option('--at <time>', 'ISO 8601; default now', time)
    .option('--json', 'as JSON')
    .action(async (level: (typeof LEVELS)[number], id: string, options: Json & { at?: string }) => {
      const { at } = options
      // Without a time, the platform looks at no call that has ended.
      const { data } = await ask('get /slots', { query: at === undefined ? { level, id } : { level, id, at } })
      if (options.json) return print(data, options)
      tell(`${data.length} held a slot of ${level} ${id} at ${at ?? iso(Date.now())}\n`)
      if (data.length > 0) print(data, options)
    })
}

function addRecount(command: Command): void {
  command
    .command('recount')
    .description('correct the counters of ceilings to the slots that are held; calls may begin and end meanwhile')
    .option('--json', 'as JSON')
    .action(async (options: Json) => {
      const { data } = await ask('post /slots/recount')
      if (options.json) return print(data, options)
      for (const { level, subject_id, said, holds } of data)
        tell(`${level} ${subject_id} said ${said}, holds ${holds}\n`)
      if (data.length === 0) tell('every counter was correct\n')
    })
}

function country(text: string): string {
  const found = findCountry(text)
  if (!found) throw new InvalidArgumentError('expected an ISO country code such as NG')
  return found.iso_code
}

function time(text: string): string {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new InvalidArgumentError('expected a time such as 2026-03-02T09:00:00Z')
  return iso(ms)
}

function shortCode(text: string): string {
  if (!/^[0-9]{2,6}$/.test(text)) throw new InvalidArgumentError('expected two to six digits')
  return text
}

function e164(text: string): string {
  const number = parseNumber(text, DEFAULT_COUNTRY)
  if (!number) throw new InvalidArgumentError('expected a number such as +2342010000112')
  return number.e164
}
