import { once } from 'node:events'
import Srf from 'drachtio-srf'
import { until } from '../../support/wait.ts'

// The application of the scenarios, on the unmodified drachtio-srf. For each scenario it defines how to handle an
// incoming call, or which call to make.

const SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 5000 RTP/AVP 0\r\n'

// The part of the library that is used. The library's own declarations lack half of it.
interface Message {
  readonly method: string
  readonly uri: string
  readonly body: string
  readonly source_address: string
  readonly source_port: number
  get(name: string): string
  has(name: string): boolean
}
interface Response extends Message {
  readonly status: number
  send(status: number, options?: object, sent?: () => void, acknowledged?: () => void): void
}
interface Request extends Message {
  on(event: 'cancel', run: () => void): void
  on(event: 'update', run: (request: Request, response: Response) => void): void
  on(event: 'response', run: (response: Response, acknowledge: () => void) => void): void
  cancel(): void
}
interface Dialog {
  on(event: string, run: (request: Request, response: Response) => void): void
  once(event: string, run: () => void): void
  destroy(): Promise<unknown>
  request(options: { method: string; body?: string; headers?: object }): Promise<Response>
}
interface App {
  use(method: string, run: (request: Request, response: Response) => void): void
  connect(options: object): unknown
  disconnect(): void
  on(event: string, run: () => void): void
  request(
    options: { uri: string; method: string; body?: string; headers?: object },
    made: (error: Error | null, request: Request) => void,
  ): void
  createUAS(request: Request, response: Response, options: object): Promise<Dialog>
  createUAC(uri: string, options: object, events?: object): Promise<Dialog>
}

export interface ScenarioApp {
  /** Requests that reached the application, by the scenario's name. */
  readonly calls: Map<string, number>
  /** Makes the call of a scenario in which the peer is called. Rejects when the call deviates from the scenario. */
  call(name: string, uri: string, fields: readonly string[]): Promise<void>
  /** Faults that the application found. */
  readonly faults: string[]
  close(): void
}

/** What the edge has exchanged with the peer at a port so far. */
interface Exchanged {
  readonly acks: (port: number) => number
  readonly answered_byes: (port: number) => number
}

/** Starts the application of the edge at this control port. */
export async function startApp(control_port: number, exchanged: Exchanged): Promise<ScenarioApp> {
  const app = new Srf() as unknown as App
  const calls = new Map<string, number>()
  const faults: string[] = []
  app.on('error', () => undefined)
  const count = (request: Request): string => {
    const name = /^\w+:([^@]*)@/.exec(request.uri)?.[1] ?? ''
    calls.set(name, (calls.get(name) ?? 0) + 1)
    return name
  }
  app.use('invite', (request, response) => {
    const name = count(request)
    const run = CALLED[name] ?? answers
    run(app, request, response).catch(error => faults.push(`${name}: ${error}`))
  })
  for (const method of ['options', 'message']) {
    app.use(method, (request, response) => {
      count(request)
      response.send(200)
    })
  }
  void app.connect({ host: '127.0.0.1', port: control_port, secret: 'cymru' })
  await once(app as unknown as NodeJS.EventEmitter, 'connect')
  return {
    calls,
    faults,
    async call(name, uri, fields) {
      const run = CALLING[name]
      if (!run) throw new Error(`no call is defined for ${name}`)
      const port = Number(/:(\d+);transport=/.exec(uri)?.[1])
      await run(app, uri, fields, {
        acknowledged: count => until(`${count} ACKs of ${name}`, () => exchanged.acks(port) >= count),
        byeAnswered: () => until(`an answer to the BYE of ${name}`, () => exchanged.answered_byes(port) >= 1),
      })
    },
    close: () => app.disconnect(),
  }
}

type Called = (app: App, request: Request, response: Response) => Promise<void>

const answers: Called = async (app, request, response) => {
  response.send(180)
  await app.createUAS(request, response, { localSdp: SDP })
}

const rings: Called = async (_app, _request, response) => response.send(180)

const refuses: Called = async (_app, _request, response) => response.send(486)

/** How the application handles the call of a peer, by scenario. It answers all others. */
const CALLED: Readonly<Record<string, Called>> = {
  'invite-repeated': rings,
  cancel: rings,
  'bye-before-answer': rings,
  'merged-request': rings,
  'final-unacknowledged': refuses,
  'final-on-a-connection': refuses,
  async 'lost-ack'(app, request, response) {
    await app.createUAS(request, response, { localSdp: SDP })
  },
  async 'route-set'(app, request, response) {
    const dialog = await app.createUAS(request, response, { localSdp: SDP })
    await acknowledged(dialog)
    await expect(dialog.request({ method: 'INFO', body: 'x', headers: { 'Content-Type': 'text/plain' } }), 200)
    await dialog.destroy()
  },
  async 'target-refresh'(app, request, response) {
    const dialog = await app.createUAS(request, response, { localSdp: SDP })
    const info = (): void => {
      void dialog.request({ method: 'INFO', body: 'x', headers: { 'Content-Type': 'text/plain' } })
    }
    dialog.on('ack', info)
    dialog.on('update', (_request, answer) => answer.send(200, {}, info))
  },
  async glare(app, request, response) {
    const dialog = await app.createUAS(request, response, { localSdp: SDP })
    await acknowledged(dialog)
    await expect(dialog.request({ method: 'INVITE', body: SDP }), 200)
    await expect(dialog.request({ method: 'INVITE', body: SDP }), 491)
    await expect(dialog.request({ method: 'INVITE', body: SDP }), 200)
  },
  async 'reliable-provisional'(app, request, response) {
    await new Promise<void>(resolve => {
      response.send(183, { body: SDP, headers: { Require: '100rel' } }, undefined, resolve)
    })
    await app.createUAS(request, response, { localSdp: SDP })
  },
  async 'lost-prack'(_app, _request, response) {
    response.send(183, { body: SDP, headers: { Require: '100rel' } })
  },
  async update(app, request, response) {
    response.send(180)
    await new Promise<void>(resolve => {
      request.on('update', (_update, answer) => answer.send(200, { body: SDP }, resolve))
    })
    const dialog = await app.createUAS(request, response, { localSdp: SDP })
    dialog.on('update', (_update, answer) => {
      answer.send(200, { body: SDP }, () => void dialog.request({ method: 'UPDATE' }))
    })
  },
  async 'refer-to-us'(app, request, response) {
    const dialog = await app.createUAS(request, response, { localSdp: SDP })
    dialog.on('refer', (refer, answer) => {
      const notify = (state: string, body: string): Promise<Response> =>
        dialog.request({
          method: 'NOTIFY',
          body,
          headers: { Event: 'refer', 'Subscription-State': state, 'Content-Type': 'message/sipfrag' },
        })
      answer.send(refer.has('Referred-By') ? 202 : 400, {}, () => {
        void notify('active;expires=60', 'SIP/2.0 100 Trying').then(() =>
          notify('terminated;reason=noresource', 'SIP/2.0 200 OK'),
        )
      })
    })
  },
  async replaces(app, request, response) {
    if (!request.get('Replaces').startsWith('old@127.0.0.1;to-tag=a')) response.send(400)
    else await app.createUAS(request, response, { localSdp: SDP })
  },
  async 'requests-of-ours'(app, request, response) {
    const dialog = await app.createUAS(request, response, { localSdp: SDP })
    await acknowledged(dialog)
    const text = { body: 'hello', headers: { 'Content-Type': 'text/plain' } }
    await expect(dialog.request({ method: 'INFO', ...text }), 200)
    await expect(dialog.request({ method: 'MESSAGE', ...text }), 200)
    await expect(dialog.request({ method: 'OPTIONS' }), 200)
    await dialog.destroy()
  },
  async 'session-id'(app, request, response) {
    const theirs = request.get('Session-ID').split(';')[0]
    const headers = { 'Session-ID': `0123456789abcdef0123456789abcdef;remote=${theirs}` }
    await app.createUAS(request, response, { localSdp: SDP, headers })
  },
}

/** What a call of the application waits for. */
interface Waits {
  acknowledged(count: number): Promise<unknown>
  byeAnswered(): Promise<unknown>
}

type Calling = (app: App, uri: string, fields: readonly string[], waits: Waits) => Promise<void>

/** The calls that the application makes, by scenario. */
const CALLING: Readonly<Record<string, Calling>> = {
  async 'final-codes'(app, uri, codes) {
    for (const code of codes) {
      const headers = { 'Call-ID': `codes-${uri}` }
      const { status } = await finalOf(app, { uri, method: 'INVITE', body: SDP, headers })
      if (status !== Number(code)) throw new Error(`${code} reached the application as ${status}`)
    }
  },
  async 'final-repeated'(app, uri) {
    await expect(finalOf(app, { uri, method: 'INVITE', body: SDP }), 503)
  },
  'answer-repeated': callsAndHangsUp(2),
  'loose-routes': callsAndHangsUp(1),
  'strict-route': callsAndHangsUp(1),
  async forks(app, uri, _fields, { acknowledged, byeAnswered }) {
    const dialog = await app.createUAC(uri, { localSdp: SDP })
    await acknowledged(2)
    // SIPp takes no second BYE before it has answered the edge's, which ends the second fork.
    await byeAnswered()
    await dialog.destroy()
  },
  async 'reliable-from-peer'(app, uri) {
    const dialog = await app.createUAC(uri, { localSdp: SDP, headers: { Supported: '100rel' } })
    await dialog.destroy()
  },
  async 'cancelled-by-us'(app, uri) {
    await new Promise<void>((resolve, reject) => {
      app.request({ uri, method: 'INVITE', body: SDP }, (error, request) => {
        if (error) return reject(error)
        request.on('response', response => {
          if (response.status >= 200) settle(response, 487, resolve, reject)
        })
        request.cancel()
      })
    })
  },
  async 'cancel-crosses-answer'(app, uri) {
    await new Promise<void>((resolve, reject) => {
      app.request({ uri, method: 'INVITE', body: SDP }, (error, request) => {
        if (error) return reject(error)
        request.on('response', (response, acknowledge) => {
          if (response.status === 180) request.cancel()
          if (response.status < 200) return
          acknowledge()
          settle(response, 200, resolve, reject)
        })
      })
    })
  },
  async 'update-by-us'(app, uri) {
    let early: Promise<Response> | undefined
    const dialog = await app.createUAC(
      uri,
      { localSdp: SDP },
      {
        cbProvisional: (response: Response & { stackDialogId: string }) => {
          const options = { uri, method: 'UPDATE', body: SDP, stackDialogId: response.stackDialogId }
          early ??= finalOf(app, options)
        },
      },
    )
    await expect(early, 200)
    await expect(dialog.request({ method: 'UPDATE', body: SDP }), 200)
    await dialog.destroy()
  },
  async 'session-refreshed-by-caller'(app, uri, _fields, { acknowledged }) {
    const headers = { 'Session-Expires': '90;refresher=uac', 'Min-SE': '90', Supported: 'timer' }
    const dialog = await app.createUAC(uri, { localSdp: SDP, headers })
    // The refresh is a re-INVITE.
    await acknowledged(2)
    await dialog.destroy()
  },
  async 'session-refreshed-by-callee'(app, uri) {
    const headers = { 'Session-Expires': '90', 'Min-SE': '90', Supported: 'timer' }
    const dialog = await app.createUAC(uri, { localSdp: SDP, headers })
    await new Promise<void>(resolve => dialog.once('destroy', resolve))
  },
  async 'refer-by-us'(app, uri) {
    const dialog = await app.createUAC(uri, { localSdp: SDP })
    const over = new Promise<void>(resolve => {
      dialog.on('notify', (notify, answer) => {
        answer.send(200)
        if (/terminated/.test(notify.get('Subscription-State')) && notify.body.includes('200 OK')) resolve()
      })
    })
    await expect(dialog.request({ method: 'REFER', headers: { 'Refer-To': '<sip:target@127.0.0.1>' } }), 202)
    await over
    await dialog.destroy()
  },
  async 'options-by-us'(app, uri) {
    await expect(finalOf(app, { uri, method: 'OPTIONS' }), 200)
  },
  async 'message-by-us'(app, uri) {
    const options = { uri, method: 'MESSAGE', body: 'hello', headers: { 'Content-Type': 'text/plain' } }
    await expect(finalOf(app, options), 200)
  },
  async 'glare-with-callee'(app, uri) {
    const dialog = await app.createUAC(uri, { localSdp: SDP })
    await expect(dialog.request({ method: 'INVITE', body: SDP }), 200)
    await dialog.destroy()
  },
}

function callsAndHangsUp(after_acks: number): Calling {
  return async (app, uri, _fields, { acknowledged }) => {
    const dialog = await app.createUAC(uri, { localSdp: SDP })
    await acknowledged(after_acks)
    await dialog.destroy()
  }
}

/** Sends a request, outside dialogs or in the dialog `stackDialogId`. Returns the final response. */
function finalOf(
  app: App,
  options: { uri: string; method: string; body?: string; headers?: object; stackDialogId?: string },
): Promise<Response> {
  return new Promise((resolve, reject) => {
    app.request(options, (error, request) => {
      if (error) return reject(error)
      request.on('response', response => {
        if (response.status >= 200) resolve(response)
      })
    })
  })
}

function settle(response: Response, wanted: number, resolve: () => void, reject: (error: Error) => void): void {
  if (response.status === wanted) resolve()
  else reject(new Error(`${response.status} instead of ${wanted}`))
}

async function expect(answer: Promise<Response> | undefined, status: number): Promise<void> {
  const response = await answer
  if (response?.status !== status) throw new Error(`${response?.status} where ${status} was due`)
}

const acknowledged = (dialog: Dialog): Promise<void> => new Promise(resolve => dialog.once('ack', resolve))
