import { compileSources, holdsAddress } from '../../core/domain/identity/index.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { State } from '../../core/state/index.ts'

const PERIOD_MS = 1000
const MAX_KNOWN = 10_000

export interface ConfiguredSources {
  /** Whether an address is a trunk's or a carrier's: these are never blocked, whatever they send. */
  covers(host: string): boolean
  stop(): void
}

/** Follows the sources of trunks and carriers. They are kept in memory: they are asked for each packet. */
export async function watchSources(state: State, log: Log): Promise<ConfiguredSources> {
  let revision = -1
  let sources = compileSources<string>([])
  let failing = false
  const known = new Map<string, boolean>()

  const read = async (): Promise<void> => {
    const row = await state.db.selectFrom('configuration').select('revision').executeTakeFirst()
    if (!row || row.revision === revision) return
    const trunks = await state.db.selectFrom('trunk_source').select('cidr').where('enabled', '=', 1).execute()
    const carriers = await state.db.selectFrom('carrier_source').select('cidr').execute()
    sources = compileSources(
      [...trunks, ...carriers].map(({ cidr }) => ({ cidr, selector_precedence: 0, owner: cidr })),
    )
    known.clear()
    revision = row.revision
  }
  const look = async (): Promise<void> => {
    try {
      await read()
      failing = false
    } catch (err) {
      if (!failing) log.warn({ err }, 'the sources of trunks and carriers cannot be read: those of before count')
      failing = true
    }
  }
  await read()
  const timer = setInterval(() => void look(), PERIOD_MS)
  timer.unref()
  return {
    covers(host) {
      const cached = known.get(host)
      if (cached !== undefined) return cached
      const covered = holdsAddress(sources, host)
      if (known.size > MAX_KNOWN) known.clear()
      known.set(host, covered)
      return covered
    },
    stop: () => clearInterval(timer),
  }
}
