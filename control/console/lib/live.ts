import { effect, signal } from '@preact/signals'
import { whenIdle } from './idle.ts'
import { may, projectId, session } from './session.ts'

/** Live events of the platform. */
interface Live {
  readonly connected: boolean
}

export const live = signal<Live>({ connected: false })

interface LiveEvent {
  readonly type: string
  readonly [field: string]: unknown
}

const listeners = new Set<(event: LiveEvent) => void>()

/** Calls the listener for every event of the project until the returned function is called. */
export function onLive(listener: (event: LiveEvent) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const FIRST_WAIT_MS = 1000
const LONGEST_WAIT_MS = 15_000

let socket: WebSocket | null = null
let wait_ms = FIRST_WAIT_MS
let timer: ReturnType<typeof setTimeout> | undefined

function connect(project: string): void {
  const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:'
  const mine = new WebSocket(
    `${scheme}//${location.host}/console/api/v1/events?project_id=${encodeURIComponent(project)}`,
  )
  socket = mine
  mine.addEventListener('open', () => {
    wait_ms = FIRST_WAIT_MS
    live.value = { connected: true }
  })
  mine.addEventListener('message', ({ data }) => {
    const event = parsed(data)
    if (event) for (const listener of listeners) listener(event)
  })
  mine.addEventListener('close', () => {
    if (socket !== mine) return
    live.value = { connected: false }
    timer = setTimeout(() => connect(project), wait_ms)
    wait_ms = Math.min(LONGEST_WAIT_MS, wait_ms * 2)
  })
}

function parsed(data: unknown): LiveEvent | null {
  if (typeof data !== 'string') return null
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === 'object' && value !== null && 'type' in value ? (value as LiveEvent) : null
  } catch {
    return null
  }
}

function disconnect(): void {
  clearTimeout(timer)
  const old = socket
  socket = null
  old?.close()
  live.value = { connected: false }
}

effect(() => {
  const project = projectId.value
  const wanted = session.value != null && project !== '' && may('live_calls:read')
  disconnect()
  const unasked = wanted ? whenIdle(() => connect(project)) : undefined
  return () => {
    unasked?.()
    disconnect()
  }
})
