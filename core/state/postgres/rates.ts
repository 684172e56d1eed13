import { fullInMs, MILLION, type RateAnswer, type RateAsk, type RateStore } from '../../runtime/rate-store.ts'
import type { Pool } from './pool.ts'
import { poolOf } from './store.ts'

/** A limit that waits longer is not worth it: the machine counts alone then. */
const WITHIN_MS = 1000

// The statements of a message are one transaction. It takes no turn of the writers, because no procedure reads these
// rows. Its commit does not wait for the disk: a crash of the server may lose the last moments of a count.
const UNSYNCED = `select set_config('synchronous_commit', 'off', true)`
const NOW = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'
const ASKED = `select * from json_to_recordset($1::json)
  as a(name text, burst bigint, per_second float8, window_ms bigint, wanted bigint, back bigint)`

const ADD = `insert into rate_bucket (name, millionths, at_ms, full_at_ms)
  select name, burst * ${MILLION}, ${NOW}, ${NOW} from (${ASKED}) asked order by name
  on conflict (name) do nothing`

// Rows are locked in order of their names, so that two machines do not wait for each other.
const DRAW = `with locked as (
    select b.millionths, b.at_ms, a.* from (${ASKED}) a join rate_bucket b on b.name = a.name
    order by a.name collate "C" for update of b
  ), timed as (
    select *, ${NOW} as now_ms from locked
  ), refilled as (
    select *, case
        when window_ms is null
          then millionths + floor(greatest(0, now_ms - at_ms) * per_second * ${MILLION / 1000})::bigint
        when now_ms - at_ms >= window_ms then burst * ${MILLION}
        else millionths
      end as level,
      case when window_ms is null or now_ms - at_ms >= window_ms then now_ms else at_ms end as began_ms
    from timed
  ), full_most as (
    select *, least(burst * ${MILLION}, level + back * ${MILLION}) as most from refilled
  ), granted as (
    select *, least(wanted, most / ${MILLION}) as grants from full_most
  ), counted as (
    select *, most - grants * ${MILLION} as rest from granted
  )
  update rate_bucket b set millionths = rest, at_ms = began_ms, full_at_ms = case
      when window_ms is null then began_ms + ceil((burst * ${MILLION} - rest) / per_second / ${MILLION / 1000})::bigint
      else began_ms + window_ms
    end
  from counted c where b.name = c.name
  returning json_build_array(b.name, grants, rest, now_ms, began_ms)`

const PRUNE = `delete from rate_bucket where full_at_ms < ${NOW}`

/** Counts requests in the database, over a connection that no writer of calls can occupy. */
export class PostgresRates implements RateStore {
  readonly #pool: Pool
  readonly #within_ms: number

  constructor(database_url: string, within_ms = WITHIN_MS) {
    this.#within_ms = within_ms
    this.#pool = poolOf(database_url, { size: 1, statement_ms: within_ms })
  }

  async draw(asks: readonly RateAsk[]): Promise<readonly RateAnswer[]> {
    const values = [JSON.stringify(asks.toSorted((one, other) => (one.name < other.name ? -1 : 1)))]
    const statements = [
      { sql: UNSYNCED, values: [] },
      { sql: ADD, values },
      { sql: DRAW, values },
    ]
    const replies = await this.#pool.use(this.#within_ms, link => link.batch(statements))
    const rows = (replies.at(-1)?.texts ?? []).map(text => JSON.parse(text ?? 'null') as [string, ...number[]])
    const by_name = new Map(rows.map(row => [row[0], row]))
    return asks.map(ask => {
      const [, granted = 0, rest = 0, now_ms = 0, began_ms = 0] = by_name.get(ask.name) ?? []
      const left = rest / MILLION
      return { granted, left, full_in_ms: fullInMs(ask, left, now_ms, began_ms) }
    })
  }

  async prune(): Promise<void> {
    await this.#pool.use(this.#within_ms, link => link.run(PRUNE))
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}
