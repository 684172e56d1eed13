import { connect } from 'node:net'
import { WebSocket } from 'ws'
import type { Test } from './harness/index.ts'
import { digestAnswer } from './phone.ts'
import { until } from './wait.ts'

/**
 * A telephone with one connection to an edge, by which alone it can be reached: TCP, or the WebSocket of a browser (RFC
 * 7118). It shares no code with the product.
 */
export class ConnectedPhone {
  readonly #send: (text: string) => void
  readonly #protocol: 'TCP' | 'WS'
  readonly arrived: Message[] = []

  private constructor(protocol: 'TCP' | 'WS', send: (text: string) => void) {
    this.#protocol = protocol
    this.#send = send
  }

  static async open(t: Test, protocol: 'tcp' | 'ws', at: { host: string; port: number; from: string }) {
    if (protocol === 'ws') {
      const socket = new WebSocket(`ws://${at.host}:${at.port}`, 'sip', { localAddress: at.from })
      t.teardown(() => socket.terminate())
      const phone = new ConnectedPhone('WS', text => socket.send(text))
      socket.on('message', (data: Buffer) => phone.#take(data.toString('latin1')))
      await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
      return phone
    }
    const socket = connect({ host: at.host, port: at.port, localAddress: at.from })
    t.teardown(() => socket.destroy())
    const phone = new ConnectedPhone('TCP', text => socket.write(text))
    let text = ''
    socket.on('data', data => {
      text += data.toString('latin1')
      for (;;) {
        const head = text.indexOf('\r\n\r\n')
        const length = Number(/^(?:content-length|l): *(\d+)/im.exec(text.slice(0, head))?.[1] ?? 0)
        if (head < 0 || text.length < head + 4 + length) return
        phone.#take(text.slice(0, head + 4 + length))
        text = text.slice(head + 4 + length)
      }
    })
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return phone
  }

  /** Registers a contact that nobody can connect to. */
  async register(
    domain: string,
    secrets: { readonly username: string; readonly password: string },
    uri = `sip:${domain}`,
  ): Promise<void> {
    const call_id = `connected-${Math.random().toString(36).slice(2)}`
    const transport = this.#protocol.toLowerCase()
    const ask = (cseq: number, authorization?: string): Promise<Message> => {
      const branch = `z9hG4bK${Math.random().toString(36).slice(2)}`
      this.#send(
        [
          `REGISTER ${uri} SIP/2.0`,
          `Via: SIP/2.0/${this.#protocol} far.invalid;branch=${branch}`,
          `From: <sip:${secrets.username}@${domain}>;tag=connected`,
          `To: <sip:${secrets.username}@${domain}>`,
          `Call-ID: ${call_id}`,
          `CSeq: ${cseq} REGISTER`,
          `Contact: <sip:${secrets.username}@far.invalid;transport=${transport}>;expires=3600`,
          'Max-Forwards: 70',
          ...(authorization ? [`Authorization: ${authorization}`] : []),
          'Content-Length: 0',
          '\r\n',
        ].join('\r\n'),
      )
      return until('the REGISTER is answered', () => this.arrived.find(({ text }) => text.includes(branch)))
    }
    let cseq = 1
    const challenged = await until('it is challenged', async () => {
      const answer = await ask(cseq++)
      return answer.status === 401 && answer
    })
    const said = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(challenged.text)?.[1] ?? ''
    const proof = { ...secrets, uri, realm: said('realm'), nonce: said('nonce'), nc: '00000001' }
    const authorization = digestAnswer({ ...proof, algorithm: 'SHA-256', method: 'REGISTER' })
    const { status } = await ask(cseq, authorization)
    if (status !== 200) throw new Error(`the REGISTER was answered with ${status}`)
  }

  /** Waits for a request. */
  request(method: string): Promise<Message> {
    return until(`a ${method}`, () => this.arrived.find(({ text }) => text.startsWith(`${method} `)))
  }

  /** Answers a request over the connection. */
  answer(request: Message, status: string, sdp = ''): void {
    const kept = request.lines.filter(line => /^(via|from|call-id|cseq|record-route):/i.test(line))
    const to = request.lines.find(line => /^to:/i.test(line)) ?? ''
    const contact = `Contact: <sip:connected@far.invalid;transport=${this.#protocol.toLowerCase()}>`
    const tagged = /;tag=/.test(to) ? to : `${to};tag=connected`
    const type = sdp === '' ? [] : ['Content-Type: application/sdp']
    const head = [`SIP/2.0 ${status}`, ...kept, tagged, contact, ...type, `Content-Length: ${sdp.length}`]
    this.#send(`${head.join('\r\n')}\r\n\r\n${sdp}`)
  }

  #take(text: string): void {
    const lines = text.split('\r\n')
    this.arrived.push({ text, lines, status: Number(/^SIP\/2\.0 (\d{3})/.exec(text)?.[1] ?? 0) })
  }
}

interface Message {
  readonly text: string
  readonly lines: readonly string[]
  /** 0 for a request. */
  readonly status: number
}
