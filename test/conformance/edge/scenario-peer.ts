import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { SaxesParser } from 'saxes'
import { WebSocket } from 'ws'
import { PATIENCE_MS } from '../../support/wait.ts'

// Plays SIPp scenario files over TLS and WebSocket, which Debian's SIPp lacks, so that one file tests every transport.
// Supports the steps that fixtures/sipp/edge uses: send, recv with ereg, pause, label.

interface Check {
  readonly pattern: RegExp
  readonly header: string | undefined
  readonly assign_to: string
}

type Step =
  | { readonly kind: 'send'; readonly text: string }
  | { readonly kind: 'pause'; readonly ms: number }
  | { readonly kind: 'label'; readonly id: string }
  | {
      readonly kind: 'recv'
      readonly wanted: string
      readonly optional: boolean
      readonly next: string | undefined
      readonly checks: Check[]
    }

/** Parses the steps of a scenario. */
export function readScenario(xml: string): readonly Step[] {
  const steps: Step[] = []
  const parser = new SaxesParser()
  parser.on('opentag', tag => {
    const a = tag.attributes
    if (tag.name === 'recv') {
      const wanted = a['request'] ?? `SIP/2.0 ${a['response']}`
      steps.push({ kind: 'recv', wanted, optional: a['optional'] === 'true', next: a['next'], checks: [] })
    } else if (tag.name === 'pause') steps.push({ kind: 'pause', ms: Number(a['milliseconds']) })
    else if (tag.name === 'label') steps.push({ kind: 'label', id: a['id'] ?? '' })
    else if (tag.name === 'ereg') {
      const last = steps.at(-1)
      if (last?.kind !== 'recv') throw new Error(`ereg outside of recv`)
      const header = a['search_in'] === 'hdr' ? a['header'] : undefined
      last.checks.push({ pattern: new RegExp(a['regexp'] ?? ''), header, assign_to: a['assign_to'] ?? '' })
    } else if (!['scenario', 'Reference', 'action', 'send'].includes(tag.name)) {
      throw new Error(`unknown step ${tag.name}`)
    }
  })
  parser.on('cdata', text => {
    const lines = text.split('\n').map(line => line.trim())
    steps.push({ kind: 'send', text: lines.slice(1, -1).join('\r\n') })
  })
  parser.write(xml).close()
  return steps
}

/** A connection to the edge. */
interface Carrier {
  readonly transport: 'TLS' | 'WS' | 'WSS'
  readonly local: { readonly host: string; readonly port: number }
  readonly remote: { readonly host: string; readonly port: number }
  send(text: string): void
  close(): void
}

interface ScenarioCalls {
  /** Resolves with the first deviation from the scenario; undefined when there is none. */
  readonly done: Promise<string | undefined>
  readonly port: number
  close(): void
}

/**
 * Calls the edge once, like `sipp -sf file -s service -m 1 edge:port`. `each` acts like `-nr`: each retransmission is a
 * step.
 */
export async function callOver(
  transport: 'TLS' | 'WS' | 'WSS',
  steps: readonly Step[],
  service: string,
  port: number,
  each = false,
): Promise<ScenarioCalls> {
  let run: Run | undefined
  const hear = (text: string): void => run?.arrived(text)
  const carrier = transport === 'TLS' ? await dialTls(port, hear) : await dialWeb(transport, port, hear)
  run = new Run(steps, carrier, { service, call_id: `${serial + 1}-scenario@127.0.0.1` }, each)
  return { done: run.play(), port: carrier.local.port, close: () => carrier.close() }
}

/** Waits for a call over TLS, like `sipp -sf file -m 1`. */
export async function answerTls(
  tls: { readonly key: string; readonly cert: string },
  steps: readonly Step[],
  each = false,
): Promise<ScenarioCalls> {
  let run: Run | undefined
  let played = (_fault: Promise<string | undefined>): void => undefined
  const done = new Promise<string | undefined>(resolve => {
    played = resolve
  })
  const sockets = new Set<TLSSocket>()
  const server = createTlsServer(tls, socket => {
    sockets.add(socket)
    const remote = { host: '127.0.0.1', port: socket.remotePort ?? 0 }
    const carrier: Carrier = {
      transport: 'TLS',
      local: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
      remote,
      send: text => void socket.write(text, 'latin1'),
      close: () => socket.destroy(),
    }
    frames(socket, text => {
      if (!run) {
        const call_id = (headerValue(text, 'Call-ID:') ?? '').trim()
        run = new Run(steps, carrier, { service: '', call_id }, each)
        played(run.play())
      }
      run.arrived(text)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    done,
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

let serial = 0

class Run {
  readonly #steps: readonly Step[]
  readonly #carrier: Carrier
  readonly #keys: { readonly service: string; readonly call_id: string }
  readonly #serial = ++serial
  readonly #assigned = new Map<string, string>()
  readonly #inbox: string[] = []
  /** Messages so far, whose retransmissions are ignored; null when each retransmission is a step. */
  readonly #heard: Set<string> | null
  #wake: (() => void) | undefined
  #last = ''

  constructor(
    steps: readonly Step[],
    carrier: Carrier,
    keys: { readonly service: string; readonly call_id: string },
    each: boolean,
  ) {
    this.#steps = steps
    this.#heard = each ? null : new Set()
    this.#carrier = carrier
    this.#keys = keys
  }

  arrived(text: string): void {
    // Ignore retransmissions, as SIPp does. On a slow machine they may come before the answer.
    if (this.#heard?.has(text)) return
    this.#heard?.add(text)
    this.#inbox.push(text)
    this.#wake?.()
  }

  /** Plays the steps. Returns the first deviation; undefined when there is none. */
  async play(): Promise<string | undefined> {
    for (let at = 0; at < this.#steps.length; at++) {
      const step = this.#steps[at]
      if (step?.kind === 'send') this.#carrier.send(this.#fill(step.text))
      else if (step?.kind === 'pause') await new Promise(resolve => setTimeout(resolve, step.ms))
      else if (step?.kind === 'recv') {
        const message = await this.#next()
        if (message === undefined) return `no message came where ${step.wanted} was expected`
        const found = this.#match(at, message)
        if (typeof found === 'string') return found
        at = found
      }
    }
    return this.#inbox.length === 0 ? undefined : `unexpected at the end: ${this.#inbox[0]}`
  }

  async #next(): Promise<string | undefined> {
    const deadline = performance.now() + PATIENCE_MS
    while (this.#inbox.length === 0 && performance.now() < deadline) {
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, deadline - performance.now())
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    return this.#inbox.shift()
  }

  // Skips optional steps. The first matching step takes the message.
  #match(from: number, message: string): number | string {
    for (let at = from; at < this.#steps.length; at++) {
      const step = this.#steps[at]
      if (step?.kind !== 'recv') break
      if (message.startsWith(`${step.wanted} `)) {
        this.#last = message
        for (const check of step.checks) {
          const where = check.header === undefined ? message : (headerValue(message, check.header) ?? '')
          const hit = check.pattern.exec(where)
          if (!hit) return `${check.pattern} does not fit ${check.header ?? 'the message'}:\n${message}`
          this.#assigned.set(check.assign_to, hit[0])
        }
        if (step.next === undefined) return at
        return this.#steps.findIndex(s => s.kind === 'label' && s.id === step.next)
      }
      if (!step.optional) break
    }
    return `unexpected at step ${from}:\n${message}`
  }

  #fill(text: string): string {
    const { local, remote, transport } = this.#carrier
    const values: Readonly<Record<string, string | number>> = {
      transport,
      local_ip: local.host,
      local_port: local.port,
      remote_ip: remote.host,
      remote_port: remote.port,
      service: this.#keys.service,
      call_id: this.#keys.call_id,
      pid: `own${process.pid}`,
      call_number: this.#serial,
    }
    const filled = text.replace(/\[([^\]]+)\]/g, (whole, key: string) => {
      if (key.startsWith('$')) return this.#assigned.get(key.slice(1)) ?? ''
      if (key.startsWith('last_')) return linesOf(this.#last, key.slice(5)).join('\r\n')
      return key === 'len' ? whole : String(values[key] ?? whole)
    })
    const body = filled.slice(filled.indexOf('\r\n\r\n') + 4)
    const complete = filled.includes('\r\n\r\n') ? filled : `${filled}\r\n\r\n`
    // As in SIPp, a body ends with an additional line break.
    return complete.includes('[len]') ? `${complete.replace('[len]', String(body.length + 2))}\r\n` : complete
  }
}

function linesOf(message: string, name: string): string[] {
  return message
    .slice(0, message.indexOf('\r\n\r\n'))
    .split('\r\n')
    .filter(line => line.startsWith(name))
}

const headerValue = (message: string, name: string): string | undefined => linesOf(message, name)[0]?.slice(name.length)

async function dialTls(port: number, hear: (text: string) => void): Promise<Carrier> {
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  frames(socket, hear)
  return {
    transport: 'TLS',
    local: { host: '127.0.0.1', port: socket.localPort ?? 0 },
    remote: { host: '127.0.0.1', port },
    send: text => void socket.write(text, 'latin1'),
    close: () => socket.destroy(),
  }
}

async function dialWeb(transport: 'WS' | 'WSS', port: number, hear: (text: string) => void): Promise<Carrier> {
  const web = new WebSocket(`${transport.toLowerCase()}://127.0.0.1:${port}`, 'sip', { rejectUnauthorized: false })
  await once(web, 'open')
  web.on('message', data => hear(data.toString()))
  web.on('error', () => undefined)
  const socket = (web as unknown as { _socket: { localPort?: number } })._socket
  return {
    transport,
    local: { host: '127.0.0.1', port: socket.localPort ?? 0 },
    remote: { host: '127.0.0.1', port },
    send: text => web.send(text),
    close: () => web.terminate(),
  }
}

/** Splits a stream into messages by Content-Length. */
function frames(socket: TLSSocket, hear: (text: string) => void): void {
  let buffered = ''
  socket.on('error', () => undefined)
  socket.on('data', chunk => {
    buffered += chunk.toString('latin1')
    for (;;) {
      buffered = buffered.replace(/^(\r\n)+/, '')
      const head = buffered.indexOf('\r\n\r\n')
      if (head < 0) return
      const end = head + 4 + Number(/\r\nContent-Length: *(\d+)/i.exec(buffered.slice(0, head))?.[1] ?? 0)
      if (buffered.length < end) return
      hear(buffered.slice(0, end))
      buffered = buffered.slice(end)
    }
  })
}
