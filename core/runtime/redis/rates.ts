import { createHash } from 'node:crypto'
import type { Log } from '../log.ts'
import { fullInMs, MILLION, type RateAnswer, type RateAsk, type RateStore } from '../rate-store.ts'
import { RedisLink } from './link.ts'

/** A limit that waits longer is not worth it: the machine counts alone then. */
const WITHIN_MS = 1000

// One script is one step for all clients of the server, whose clock counts. A key lives until its limit is full again.
const DRAW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answers = {}
for i, key in ipairs(KEYS) do
  local first = (i - 1) * 5
  local burst, per_second, window, wanted, back = tonumber(ARGV[first + 1]) * ${MILLION}, tonumber(ARGV[first + 2]),
    tonumber(ARGV[first + 3]), tonumber(ARGV[first + 4]), tonumber(ARGV[first + 5]) * ${MILLION}
  local kept = redis.call('HMGET', key, 'millionths', 'at_ms')
  local level, at = tonumber(kept[1] or burst), tonumber(kept[2] or now)
  if window == 0 then
    level = level + math.floor(math.max(0, now - at) * per_second * ${MILLION / 1000})
    at = now
  elseif now - at >= window then
    level = burst
    at = now
  end
  level = math.min(burst, level + back)
  local granted = math.min(wanted, math.floor(level / ${MILLION}))
  level = level - granted * ${MILLION}
  local lasts = window
  if window == 0 then lasts = math.ceil((burst - level) / per_second / ${MILLION / 1000}) end
  redis.call('HSET', key, 'millionths', string.format('%.0f', level), 'at_ms', string.format('%.0f', at))
  redis.call('PEXPIRE', key, math.max(1, lasts))
  answers[i] = { granted, string.format('%.0f', level), string.format('%.0f', now), string.format('%.0f', at) }
end
return answers`

const HASH = createHash('sha1').update(DRAW).digest('hex')

type Answered = readonly (readonly [number, string, string, string])[]

interface Settings {
  readonly url: string
  readonly prefix: string
  readonly log: Log
  /** How long an answer may take: `WITHIN_MS`, except in tests that are not about it. */
  readonly within_ms?: number | undefined
}

/** Counts requests in a Redis server. */
export class RedisRates implements RateStore {
  readonly #link: RedisLink
  readonly #prefix: string
  readonly #within_ms: number

  constructor({ url, prefix, log, within_ms = WITHIN_MS }: Settings) {
    this.#prefix = prefix
    this.#within_ms = within_ms
    this.#link = new RedisLink({ url, log, without: 'the database counts for the shared limits' })
  }

  async draw(asks: readonly RateAsk[]): Promise<readonly RateAnswer[]> {
    const keys = asks.map(({ name }) => `${this.#prefix}:rate:${name}`)
    const values = asks.flatMap(({ burst, per_second, window_ms, wanted, back }) =>
      [burst, per_second, window_ms ?? 0, wanted, back].map(String),
    )
    const words = [`${keys.length}`, ...keys, ...values]
    const answers = await this.#link.run(
      client =>
        client.sendCommand<Answered>(['EVALSHA', HASH, ...words]).catch(error => {
          // The server was restarted, or has never seen the script.
          if (!String(error).includes('NOSCRIPT')) throw error
          return client.sendCommand<Answered>(['EVAL', DRAW, ...words])
        }),
      this.#within_ms,
    )
    return asks.map((ask, at) => {
      const [granted = 0, rest = 0, now_ms = 0, began_ms = 0] = answers[at] ?? []
      const left = Number(rest) / MILLION
      return { granted: Number(granted), left, full_in_ms: fullInMs(ask, left, Number(now_ms), Number(began_ms)) }
    })
  }

  /** The server forgets them by itself. */
  async prune(): Promise<void> {}

  close(): Promise<void> {
    return this.#link.close()
  }
}
