import { acceptRecordingConsent, TERMS_VERSION } from '../../core/state/calls/recording-consent.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { releaseTrunk } from '../../core/state/configuration/trunks.ts'
import type { State, Trx } from '../../core/state/index.ts'
import { atProcessEnd, type Test } from './harness/index.ts'
import { addTenant } from './tenants.ts'
import { until } from './wait.ts'
import { openWorld, type World } from './world.ts'

type Platform = ReturnType<typeof openWorld>

/** Enough for the story with the most legs after another one: a port is not reused within half a minute. */
const STORY_PORTS = 2600

/** The platform of this process, from its first story on. */
let running: Platform | null = null
let customers = 0

/** What belongs to no customer. A story may change it until its end. */
const OF_ALL = [
  'carrier',
  'carrier_source',
  'carrier_target',
  'carrier_route',
  'carrier_credential',
  'carrier_registration',
] as const

/**
 * Gives the story a customer of its own, with ten numbers and recording consent, on a platform that all stories of
 * this process share: a start costs more than most stories. Stories of one process run one after the other, so the
 * story has the platform for itself. At its end it must leave no call; the invariants are checked and its trunks are
 * released. After a story that failed, the next one gets a fresh platform. A story that changes settings, drains
 * processes, or stands for the demo project, starts its own `world`.
 */
export async function sharedWorld(t: Test): Promise<World> {
  running ??= start()
  const mine = running
  const { w: platform } = await mine
  const customer = await addTenant(platform.state, platform.master_key, numbersOf(++customers), `Customer ${customers}`)
  const consent = { project_id: customer.project_id, accepted_at: new Date().toISOString(), accepted_by: 'x' }
  await platform.state.transaction(trx => acceptRecordingConsent(trx, { ...consent, terms_version: TERMS_VERSION }))
  await until('the signaling node knows the customer', () =>
    platform.state.db
      .selectFrom('apply_report')
      .select('revision')
      .where('resource_id', '=', customer.project_id)
      .executeTakeFirst(),
  )
  const before = await rowsOfAll(platform.state)
  const w = platform.as(customer)
  t.teardown(async () => {
    let whole = false
    try {
      if (t.passing()) await leave(w, before)
      whole = t.passing()
    } finally {
      if (!whole) {
        await stop(mine)
        t.comment(w.log())
      }
    }
  })
  return w
}

function start(): Platform {
  const platform = openWorld({ rtp_ports: STORY_PORTS })
  atProcessEnd(() => stop(platform))
  return platform
}

async function stop(platform: Platform): Promise<void> {
  if (running !== platform) return
  running = null
  await (await platform).close()
}

/** Ten numbers in Lagos that no other customer has. */
const numbersOf = (customer: number): string[] =>
  Array.from({ length: 10 }, (_, at) => `+234201${String(customer).padStart(4, '0')}${String(at + 1).padStart(3, '0')}`)

type Rows = ReadonlyMap<(typeof OF_ALL)[number], readonly object[]>

async function rowsOfAll({ db }: Pick<State, 'db'>): Promise<Rows> {
  const rows = new Map<(typeof OF_ALL)[number], readonly object[]>()
  for (const table of OF_ALL) rows.set(table, await db.selectFrom(table).selectAll().execute())
  return rows
}

/** Ends a customer's use of the platform. Rejects when calls remain or an invariant is broken. */
async function leave(w: World, before: Rows): Promise<void> {
  const { db } = w.state
  await until(
    'the story has ended its calls',
    async () => (await db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()).length === 0,
  )
  await w.intact()
  const now = new Date().toISOString()
  await w.state.transaction(async trx => {
    await trx.updateTable('number').set({ route_kind: null, route_id: null }).execute()
    const trunks = await trx.selectFrom('trunk').selectAll().where('status', '!=', 'released').execute()
    for (const trunk of trunks) await releaseTrunk(trx, trunk, now)
    await restore(trx, before)
    await bumpConfiguration(trx)
  })
}

async function restore(trx: Trx, before: Rows): Promise<void> {
  for (const [table, rows] of before) {
    await trx.deleteFrom(table).execute()
    if (rows.length > 0)
      await trx
        .insertInto(table)
        .values(rows as never)
        .execute()
  }
}
