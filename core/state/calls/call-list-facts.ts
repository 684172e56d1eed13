import type { LegFigures } from '../../domain/calls/leg-figures.ts'
import type { Db } from '../db.ts'

/** What a list says of a call beside its own row; null while it is not known. */
interface UnpricedFacts {
  readonly trunk_name: string | null
  readonly codec: string | null
  /** The lowest MOS of its legs: of those that have ended, or the last sample of a call that runs. */
  readonly mos: number | null
}

interface ListFacts extends UnpricedFacts {
  readonly price_minor: number | null
}

interface Listed {
  readonly sid: string
  readonly trunk_id: string | null
}

type Quality = Pick<LegFigures, 'codec' | 'mos'>

const NOTHING: ListFacts = { trunk_name: null, codec: null, mos: null, price_minor: null }

/** Reads the facts of the calls of one page. Each kind is one query, whatever the number of calls. */
export async function listFactsOf(db: Db, calls: readonly Listed[]): Promise<(sid: string) => ListFacts> {
  if (calls.length === 0) return () => NOTHING
  const sids = calls.map(({ sid }) => sid)
  const factsOf = await unpricedFactsOf(db, calls)
  const prices = await db
    .selectFrom('reservation')
    .select(['call_sid', 'charge_minor'])
    .where('call_sid', 'in', sids)
    .execute()
  const priceOf = new Map(prices.map(({ call_sid, charge_minor }) => [call_sid, charge_minor]))
  return sid => ({ ...factsOf(sid), price_minor: priceOf.get(sid) ?? null })
}

/** Reads them without what the calls cost. */
export async function unpricedFactsOf(db: Db, calls: readonly Listed[]): Promise<(sid: string) => UnpricedFacts> {
  if (calls.length === 0) return () => NOTHING
  const sids = calls.map(({ sid }) => sid)
  const names = await trunkNames(db, calls)
  const quality = await qualityOf(db, sids)
  const trunkOf = new Map(calls.map(({ sid, trunk_id }) => [sid, trunk_id]))
  return sid => {
    const legs = quality.get(sid) ?? []
    const scores = legs.flatMap(({ mos }) => (mos === null ? [] : [mos]))
    return {
      trunk_name: names.get(trunkOf.get(sid) ?? '') ?? null,
      codec: legs.find(({ codec }) => codec !== null)?.codec ?? null,
      mos: scores.length === 0 ? null : Math.min(...scores),
    }
  }
}

async function trunkNames(db: Db, calls: readonly Listed[]): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(calls.flatMap(({ trunk_id }) => trunk_id ?? []))]
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('trunk').select(['id', 'name']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** The legs of each call: their final figures, or the last sample where no leg has ended. */
async function qualityOf(db: Db, sids: readonly string[]): Promise<ReadonlyMap<string, readonly Quality[]>> {
  const found = new Map<string, Quality[]>()
  const add = (sid: string, json: string) => found.set(sid, [...(found.get(sid) ?? []), JSON.parse(json) as Quality])
  const ended = await db
    .selectFrom('leg_figures')
    .select(['call_sid', 'figures'])
    .where('call_sid', 'in', sids)
    .orderBy('ended_at')
    .execute()
  for (const { call_sid, figures } of ended) add(call_sid, figures)
  const running = sids.filter(sid => !found.has(sid))
  if (running.length === 0) return found
  // One look into the index for each call. A call of an hour has hundreds of samples.
  const last = await db
    .selectFrom('media_quality')
    .select(['call_sid', 'stats'])
    .where('id', 'in', eb =>
      eb
        .selectFrom('call')
        .select(inner =>
          inner
            .selectFrom('media_quality as sample')
            .select(of => of.fn.max('sample.id').as('id'))
            .whereRef('sample.call_sid', '=', 'call.sid')
            .as('last_id'),
        )
        .where('call.sid', 'in', running),
    )
    .execute()
  for (const { call_sid, stats } of last) add(call_sid, stats)
  return found
}
