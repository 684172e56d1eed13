import { Command } from 'commander'
import { figuresInWords } from '../core/domain/calls/leg-figures.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { listProjectCalls } from '../core/state/calls/call-history.ts'
import { unpricedFactsOf } from '../core/state/calls/call-list-facts.ts'
import { legFiguresOf } from '../core/state/calls/media-quality.ts'
import { findCall } from '../core/state/calls/running-calls.ts'
import type { Db } from '../core/state/index.ts'
import { costOfCall, pricesOf } from '../core/state/money/reservations.ts'
import { print } from './operator-print.ts'
import { wholeCallSid, withWholeIds } from './short-ids.ts'
import { withState } from './state.ts'

// Commands that read what the customers have. Whoever can open the database may.

interface Options {
  readonly project?: string
  readonly limit?: string
  readonly json?: boolean
}

const MOST = 1000

function limitOf({ limit = '50' }: Options): number {
  const count = Number(limit)
  if (!Number.isInteger(count) || count < 1 || count > MOST)
    throw new StartRefused(`--limit ${limit}: expected 1 to ${MOST}`)
  return count
}

type Read = (db: Db, options: Options) => Promise<object[]>

const listing = (command: Command, description: string, read: Read): Command =>
  command.addCommand(
    new Command('list')
      .description(description)
      .option('--project <id>', 'of this project alone')
      .option('--limit <count>', 'at most so many', '50')
      .option('--json', 'as JSON')
      .action((options: Options) =>
        withState(async ({ db }) => {
          const { project_id } = await withWholeIds(db, { project_id: options.project })
          const whole = project_id === undefined ? options : { ...options, project: project_id }
          print(await read(db, whole), options)
        }),
      ),
  )

export const callsCommand = (): Command =>
  listing(new Command('calls'), 'calls of all projects, or of one, newest first', async (db, options) => {
    const limit = limitOf(options)
    const rows =
      options.project === undefined
        ? await db.selectFrom('call').selectAll().orderBy('position', 'desc').limit(limit).execute()
        : await listProjectCalls(db, options.project, {}, { limit })
    const factsOf = await unpricedFactsOf(db, rows)
    const costOf = await pricesOf(
      db,
      rows.map(({ sid }) => sid),
    )
    return rows.map(row => {
      const { trunk_name, mos } = factsOf(row.sid)
      const { price_minor, price } = costOf(row.sid)
      return {
        id: row.sid,
        from: row.from_number,
        to: row.to_number,
        status: row.status,
        at: row.queued_at,
        seconds: row.duration_seconds,
        trunk: trunk_name,
        mos,
        ...(options.json ? { price_minor, price } : { price: price?.sentence ?? null }),
        reason: row.reason,
        project_id: row.project_id,
      }
    })
  }).addCommand(showCall())

/** What is known of a call: its sides, its times, how and why it ended, the media of its legs, and its price. */
const showCall = (): Command =>
  new Command('show')
    .description('one call: its times, end, legs and price')
    .argument('<call_sid>', 'CallSid (CA…), or its first characters')
    .option('--json', 'as JSON')
    .action((typed: string, options: { readonly json?: true }) =>
      withState(async ({ db }) => {
        const sid = await wholeCallSid(db, typed)
        const row = await findCall(db, sid)
        if (!row) throw new StartRefused(`there is no call ${sid}`)
        const { trunk_name } = (await unpricedFactsOf(db, [row]))(sid)
        const legs = await legFiguresOf(db, sid)
        const { price = null } = (await costOfCall(db, sid)) ?? {}
        const call = {
          id: sid,
          from: row.from_number,
          to: row.to_number,
          direction: row.direction,
          status: row.status,
          reason: row.reason,
          sip_code: row.sip_code,
          ended_by: row.ended_by,
          project_id: row.project_id,
          trunk: trunk_name,
          queued_at: row.queued_at,
          ringing_at: row.ringing_at,
          answered_at: row.answered_at,
          ended_at: row.ended_at,
          pdd_ms: row.pdd_ms,
          seconds: row.duration_seconds,
        }
        if (options.json) return print({ ...call, price, legs }, options)
        const told = legs.map((leg, at) => [`leg ${at + 1}`, figuresInWords(leg)])
        print({ ...call, ...Object.fromEntries(told), price: price?.sentence ?? null }, options)
      }),
    )

export const trunksCommand = (): Command =>
  listing(new Command('trunks'), 'trunks of all projects, or of one, by their names', (db, options) => {
    const query = db
      .selectFrom('trunk')
      .select(['id', 'name', 'status', 'direction', 'auth_mode', 'project_id', 'revision', 'updated_at'])
      .where('status', '!=', 'released')
      .orderBy('name')
      .limit(limitOf(options))
    return (options.project === undefined ? query : query.where('project_id', '=', options.project)).execute()
  })

export const alertsCommand = (): Command =>
  listing(new Command('alerts'), 'alerts of all projects, or of one, newest first', (db, options) => {
    const query = db
      .selectFrom('alert')
      .select(['id', 'kind', 'severity', 'state', 'fired_at', 'reason', 'project_id'])
      .orderBy('fired_at', 'desc')
      .limit(limitOf(options))
    return (options.project === undefined ? query : query.where('project_id', '=', options.project)).execute()
  })
