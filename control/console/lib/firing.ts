import { effect, signal } from '@preact/signals'
import { read } from './api.ts'
import type { AlertOverview } from './api-types.ts'
import { whenIdle } from './idle.ts'
import { live, onLive } from './live.ts'
import { may, projectId, session } from './session.ts'

const POLL_MS = 15_000

/**
 * The number of alerts of the project that fire now; null until it is read. It follows the alerts' events; polls find
 * what those missed.
 */
export const firing = signal<number | null>(null)

let asked = 0

/** Reads the alerts. Only the newest read counts: an earlier one may arrive after it. */
async function reload(): Promise<void> {
  const mine = ++asked
  // The range adds resolved alerts, so the shortest one is enough for those that fire.
  const { alerts } = await read<AlertOverview>('/v1/alerts?range=24h')
  if (mine === asked) firing.value = alerts.filter(({ state }) => state === 'firing').length
}

/** Keeps the last count while the platform does not answer. The page itself shows that. */
const tryReload = (): void => void reload().catch(() => undefined)

effect(() => {
  const wanted = session.value != null && projectId.value !== '' && may('service_configuration:read')
  asked++
  firing.value = null
  if (!wanted) return
  const unasked = whenIdle(tryReload)
  const timer = setInterval(() => document.visibilityState === 'visible' && tryReload(), POLL_MS)
  const unhear = onLive(({ type }) => type === 'alert' && tryReload())
  return () => {
    unasked()
    clearInterval(timer)
    unhear()
  }
})

// Events are lost while the connection is down.
effect(() => {
  if (live.value.connected) tryReload()
})
