import { createEdge, type Edge, type EdgeOptions } from '../../../signaling/edge/index.ts'
import { PATIENCE_MS } from '../../support/wait.ts'
import { difference, Identifiers } from './compare.ts'
import { Control, Peer } from './replay-ends.ts'
import { testClock } from './test-clock.ts'
import type { TranscriptEvent } from './transcript.ts'

// Feeds the network's and the client's messages of a transcript to an edge, and compares what the edge sends with
// what the reference sent. Time runs `speed` times as fast as in the recording.

export interface ReplayOptions {
  readonly speed?: number
  readonly edge?: Partial<EdgeOptions>
  /** Recorded messages that the edge deliberately does not send: part of their text, and the reason. */
  readonly omitted?: readonly (readonly [text: string, why: string, nth?: number])[]
  /** Messages that the edge sends in addition to the recorded ones: part of their text, and the reason. */
  readonly added?: readonly (readonly [text: string, why: string])[]
  /** Parts of inputs that are skipped, because a deliberate difference makes them meaningless. */
  readonly skipped_inputs?: readonly string[]
  /** Control connections that the recorder closed, although the remark says that the server did. */
  readonly cut?: readonly string[]
  /** Bytes, by control connection, that make the server close it. The recorder could not store them. */
  readonly junk?: Readonly<Record<string, string>>
  /** Control connections that the edge, unlike the reference, does not close. */
  readonly stays_open?: readonly string[]
  /** The certificate for SIP over TLS, of the edge and of the peers. */
  readonly tls?: { readonly key: string; readonly cert: string }
}

interface ReplayResult {
  readonly faults: readonly string[]
  /** Deliberate differences that occurred. */
  readonly noted: readonly string[]
  readonly compared: number
}

type Expected = { text: string; at_ms: number; direction: 'S>C' | 'S>N'; name: string; whole: boolean }

export async function replay(events: readonly TranscriptEvent[], options: ReplayOptions = {}): Promise<ReplayResult> {
  const run = new Replay(events, options)
  try {
    return await run.run()
  } finally {
    run.close()
  }
}

class Replay {
  readonly #events: readonly TranscriptEvent[]
  readonly #options: ReplayOptions
  readonly #speed: number
  readonly #ids = new Identifiers()
  readonly #peers = new Map<string, Peer>()
  readonly #controls = new Map<string, Control>()
  readonly #expected: Expected[] = []
  readonly #actual = new Map<string, string[]>()
  readonly #seen = new Map<string, Set<string>>()
  readonly #faults: string[] = []
  readonly #noted: string[] = []
  readonly #occurrences = new Map<string, number>()
  #compared = 0
  #wake: (() => void) | undefined
  #edge: Edge | undefined

  constructor(events: readonly TranscriptEvent[], options: ReplayOptions) {
    this.#events = events
    this.#options = options
    this.#speed = options.speed ?? 4
  }

  close(): void {
    for (const control of this.#controls.values()) control.close()
    for (const peer of this.#peers.values()) peer.close()
    this.#edge?.close()
  }

  async run(): Promise<ReplayResult> {
    const { tls } = this.#options
    this.#edge = await createEdge({
      listeners: [
        { protocol: 'udp', host: '127.0.0.1', port: 0 },
        { protocol: 'tcp', host: '127.0.0.1', port: 0, same_port: true },
        ...(tls ? [{ protocol: 'tls' as const, host: '127.0.0.1', port: 0 }] : []),
      ],
      tls,
      control: { host: '127.0.0.1', port: 0, secret: 'cymru' },
      clock: testClock(this.#speed),
      tcp_above_bytes: 65_535,
      limits: { failures: 1_000_000 },
      ...this.#options.edge,
    })
    await this.#preparePorts(this.#edge)
    const start = performance.now()
    for (const event of this.#events) {
      if (event.kind === 'message' && (event.direction === 'S>C' || event.direction === 'S>N')) {
        this.#expect(event)
        continue
      }
      await this.#settle(event.at_ms, start)
      if (event.kind === 'remark') await this.#remark(event.text)
      else await this.#input(event)
      if (this.#faults.length > 3) break
    }
    const last = this.#events.at(-1)?.at_ms ?? 0
    await this.#settle(last, start)
    await pause(30)
    this.#match()
    for (const expected of this.#expected)
      this.#faults.push(`${expected.direction} ${expected.name} did not come: ${short(expected.text)}`)
    for (const [channel, texts] of this.#actual) for (const text of texts) this.#unexpected(channel, text)
    return { faults: this.#faults, noted: this.#noted, compared: this.#compared }
  }

  // Opens every peer on its own port, and pairs recorded ports with actual ones.
  async #preparePorts(edge: Edge): Promise<void> {
    const own = String(edge.listeners[0]?.port ?? 0)
    const handshake = this.#events.some(
      e => e.kind === 'message' && e.direction === 'S>C' && serverPort(e) !== undefined,
    )
    for (const event of this.#events) {
      if (event.kind !== 'message' || (handshake && event.direction !== 'S>C')) continue
      const recorded = serverPort(event)
      if (recorded !== undefined) this.#ids.pair(recorded, own)
      const secure = /\|tls\/127\.0\.0\.1:(\d+)/.exec(event.text)?.[1]
      const tls = edge.listeners.find(l => l.protocol === 'tls')
      if (secure !== undefined && tls) this.#ids.pair(secure, String(tls.port))
    }
    const names = new Set<string>()
    for (const e of this.#events)
      if (e.kind === 'message' && e.direction[0] !== 'C' && e.direction[2] !== 'C') names.add(e.name)
    for (const name of names) {
      const peer = await Peer.open(this.#options.tls, text => this.#arrived('S>N', name, text))
      this.#peers.set(name, peer)
      const recorded = peerPort(this.#events, name)
      if (recorded !== undefined) this.#ids.pair(recorded, String(peer.port))
    }
  }

  #expect(event: TranscriptEvent & { kind: 'message' }): void {
    // The recorder stores each read from a TLS connection, which may be a part of a message.
    if (event.direction === 'S>N' && !/^[^\r]*SIP\/2\.0/.test(event.text)) return
    const omitted = this.#options.omitted?.find(([text, , nth]) => {
      if (!event.text.includes(text)) return false
      const count = (this.#occurrences.get(text) ?? 0) + 1
      this.#occurrences.set(text, count)
      return nth === undefined || nth === count
    })
    if (omitted) {
      this.#noted.push(omitted[1])
      return
    }
    this.#expected.push({
      text: event.text,
      at_ms: event.at_ms,
      direction: event.direction as 'S>C' | 'S>N',
      name: event.name,
      whole: event.text.length === event.length && !event.name.endsWith('(tls)'),
    })
    this.#match()
  }

  #arrived(direction: 'S>C' | 'S>N', name: string, text: string): void {
    const channel = `${direction} ${name}`
    const seen = this.#seen.get(channel) ?? new Set()
    this.#seen.set(channel, seen)
    const list = this.#actual.get(channel) ?? []
    this.#actual.set(channel, list)
    list.push(text)
    this.#match()
    this.#wake?.()
  }

  #match(): void {
    for (let i = 0; i < this.#expected.length; i++) {
      const expected = this.#expected[i]
      if (!expected) continue
      const channel = `${expected.direction} ${expected.name}`
      const list = this.#actual.get(channel) ?? []
      const index = list.findIndex(text => {
        return difference(this.#ids, expected.text, text, expected.direction === 'S>C', expected.whole) === undefined
      })
      if (index < 0) continue
      const [found] = list.splice(index, 1)
      if (found !== undefined) this.#seen.get(channel)?.add(found)
      this.#expected.splice(i, 1)
      this.#compared++
      i--
    }
  }

  // Waits for the time of the next input and for all messages that were recorded before it.
  async #settle(at_ms: number, start: number): Promise<void> {
    const due = start + at_ms / this.#speed
    const wait = due - performance.now()
    if (wait > 2) await pause(wait)
    const deadline = Math.max(due, performance.now()) + PATIENCE_MS / 3
    while (this.#expected.length > 0 && performance.now() < deadline) {
      await Promise.race([
        new Promise<void>(resolve => {
          this.#wake = resolve
        }),
        pause(Math.min(200, deadline - performance.now())),
      ])
      this.#match()
    }
    for (const expected of this.#expected.splice(0)) {
      const channel = `${expected.direction} ${expected.name}`
      const list = this.#actual.get(channel) ?? []
      const near = list.shift()
      const why =
        near === undefined
          ? 'nothing came'
          : difference(this.#ids, expected.text, near, expected.direction === 'S>C', expected.whole)
      this.#faults.push(`${channel} at ${expected.at_ms}: ${why ?? 'came too late'} for ${short(expected.text)}`)
    }
  }

  #unexpected(channel: string, text: string): void {
    // On a busy machine a retransmission timer may fire once more than in the recording.
    if (this.#seen.get(channel)?.has(text)) return
    const known = this.#options.added?.find(([part]) => text.includes(part))
    if (known) this.#noted.push(known[1])
    else this.#faults.push(`${channel} was not expected: ${short(text)}`)
  }

  async #remark(text: string): Promise<void> {
    const opened = /^(ctl\d+): control connection opened by the client/.exec(text)
    if (opened?.[1]) {
      const name = opened[1]
      const control = await Control.open(this.#edge?.control.port ?? 0, payload => this.#arrived('S>C', name, payload))
      this.#controls.set(name, control)
    }
    const closed = /^(ctl\d+): control connection closed by client/.exec(text)
    if (closed?.[1]) this.#controls.get(closed[1])?.close()
    const ended = /^(ctl\d+): control connection closed by server/.exec(text)
    if (ended?.[1] && this.#options.cut?.includes(ended[1])) {
      const open = this.#edge?.stats().applications ?? 0
      this.#controls.get(ended[1])?.close()
      while (this.#edge && this.#edge.stats().applications >= open) await pause(2)
    } else if (ended?.[1] && !this.#options.stays_open?.includes(ended[1])) {
      const junk = this.#options.junk?.[ended[1]]
      if (junk !== undefined) this.#controls.get(ended[1])?.send(junk, true)
      const control = this.#controls.get(ended[1])
      if (control && !(await control.closedWithin(PATIENCE_MS / 3)))
        this.#faults.push(`${ended[1]} was not closed by the server`)
    }
    if (/^\w+: SIP tcp connection closed$/.test(text)) this.#peers.get(text.slice(0, text.indexOf(':')))?.closeStreams()
  }

  async #input(event: TranscriptEvent & { kind: 'message' }): Promise<void> {
    if (this.#options.skipped_inputs?.some(part => event.text.includes(part))) return
    let text = this.#ids.translate(event.text)
    if (event.text.length < event.length) text += 'x'.repeat(event.length - event.text.length)
    if (event.direction === 'C>S') {
      this.#controls.get(event.name)?.send(text, event.unparsed)
      return
    }
    const stream = /^(?:Via|v): SIP\/2\.0\/(?:TCP|TLS)/im.test(event.text)
    const response = event.text.startsWith('SIP/2.0')
    const local = await this.#peers.get(event.name)?.send(text, stream, response, this.#edge?.listeners[0]?.port ?? 0)
    // Over TCP the peer's recorded ephemeral port appears in rport and in the meta fields.
    if (local !== undefined && stream && !response) {
      const later = this.#events.slice(this.#events.indexOf(event))
      for (const next of later) {
        const recorded =
          next.kind === 'message' && next.direction !== 'N>S' ? /rport=(\d+)/.exec(next.text)?.[1] : undefined
        if (recorded === undefined) continue
        this.#ids.pair(recorded, String(local))
        break
      }
    }
  }
}

function serverPort(event: TranscriptEvent & { kind: 'message' }): string | undefined {
  if (event.direction === 'S>C') return /[|,](?:tcp|udp)\/127\.0\.0\.1:(\d+)/.exec(event.text)?.[1]
  if (event.direction === 'N>S') return /^[A-Z]+ sip:(?:\w+@)?127\.0\.0\.1:(\d+)[^\r]* SIP/.exec(event.text)?.[1]
  return undefined
}

function peerPort(events: readonly TranscriptEvent[], name: string): string | undefined {
  for (const e of events) {
    if (e.kind !== 'message' || e.name !== name) continue
    const found =
      e.direction === 'N>S' && !e.text.startsWith('SIP/')
        ? /^(?:Via|v): SIP\/2\.0\/\w+ 127\.0\.0\.1:(\d+)/m.exec(e.text)?.[1]
        : e.direction === 'S>N' && !e.text.startsWith('SIP/')
          ? /^[A-Z]+ sips?:(?:\w+@)?127\.0\.0\.1:(\d+)/.exec(e.text)?.[1]
          : undefined
    if (found !== undefined) return found
  }
  // A peer behind a proxy option only answers. Its port is the source of its responses.
  for (const e of events) {
    if (e.kind !== 'message' || e.direction !== 'S>C') continue
    const found = /\|sip\|network\|\d+\|\w+\|127\.0\.0\.1\|(\d+)\|/.exec(e.text)?.[1]
    if (found !== undefined) return found
  }
  return undefined
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

function short(text: string): string {
  return text.slice(0, 400).replaceAll('\r\n', ' ¶ ')
}
