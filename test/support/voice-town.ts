import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { sidOf } from './busy.ts'
import type { Test } from './harness/index.ts'
import { type Line, openSoftphone, type Softphone } from './softphone.ts'
import { until } from './wait.ts'
import { type Page, type WebRequest, type WebServer, webServer } from './web.ts'
import type { World } from './world.ts'

/**
 * A platform with a customer: a desk telephone that calls the customer's numbers, a far telephone that receives every
 * outbound call, and a web server with the documents.
 */
interface VoiceTown {
  readonly w: World
  readonly desk: Softphone
  readonly far: Softphone
  readonly web: WebServer
  /** Pages by path. Tests may add more. */
  readonly pages: Record<string, Page>
  /** Our number that is routed to the trunk with the far telephone. */
  readonly trunk_number: string
  /** Our number whose calls run the document at `/voice`. */
  readonly own_number: string
  /** Returns a new number outside the platform. */
  someone(): string
  /** Calls our number from the desk, with `markup` as its document. */
  callIn(markup: string): Promise<Line>
  /** Places a REST call that runs `markup` to the far telephone, which answers at once. */
  callOut(markup: string, form?: Record<string, string>): Promise<{ readonly sid: string; readonly line: Line }>
  /** Returns the sid of the call on a line of the desk. */
  sidOf(line: Line): Promise<string>
  /** Returns the form fields of the first request to a path; waits for one. */
  told(path: string): Promise<Record<string, string>>
  /** Returns the form fields of all requests to a path so far. */
  all(path: string): Record<string, string>[]
  /** Waits until a call has `count` events with this number. */
  noted(sid: string, number: number, count?: number): Promise<unknown>
}

const HOST = '127.0.0.1'

export async function voiceTown(
  t: Test,
  options: {
    /** Starts or shares the platform. Its engines may run on the customer's web server. */
    world: (web: WebServer) => Promise<World>
    addresses: readonly [desk: string, far: string]
  },
): Promise<VoiceTown> {
  const [desk_address, far_address] = options.addresses
  const desk = await openSoftphone(t, desk_address)
  const far = await openSoftphone(t, far_address)
  const pages: Record<string, Page> = {}
  const web = await webServer(
    t,
    // Any other path answers 204: it serves an empty document or acknowledges a callback.
    new Proxy(pages, { get: (target, path) => target[String(path)] ?? { status: 204 } }),
  )
  const w = await options.world(web)
  const [, trunk_number = '', own_number = ''] = w.numbers
  const trunk_id = await w.addTrunk(desk_address, {
    targets: [{ sip_uri: `sip:${far_address}:${far.port}`, transport: 'udp', priority: 1, weight: 1 }],
  })
  await w.state.transaction(async trx => {
    await trx
      .updateTable('number')
      .set(eb => ({ route_kind: 'trunk', route_id: trunk_id, revision: eb('revision', '+', 1) }))
      .where('e164', '=', trunk_number)
      .execute()
    await bumpConfiguration(trx)
  })
  await w.routeToApplication(own_number, `${web.url}/voice`)

  let someone = 0
  const fields = (request: WebRequest): Record<string, string> => Object.fromEntries(request.fields)
  const all: VoiceTown['all'] = path => web.requests.filter(request => request.path === path).map(fields)
  return {
    w,
    desk,
    far,
    web,
    pages,
    trunk_number,
    own_number,
    someone: () => `+23480300${String(20_000 + someone++)}`,
    async callIn(markup) {
      pages['/voice'] = markup
      return desk.dial(`sip:${own_number}@${HOST}:${w.sip.port}`, { from: '+2348030009999' })
    },
    async callOut(markup, form = {}) {
      const To = `+23480300${String(20_000 + someone++)}`
      const made = await w.voice('POST', '/Calls.json', { To, From: trunk_number, InlineMarkup: markup, ...form })
      if (made.status !== 201) throw new Error(JSON.stringify(made.body))
      const line = await far.incoming(To)
      await line.answer()
      return { sid: made.body.sid, line }
    },
    sidOf: line => sidOf(w.state.db, line),
    told: async path => fields(await web.seen(path)),
    all,
    noted: (sid, number, count = 1) =>
      until(`${count} of ${number}`, async () => {
        const rows = await w.state.db.selectFrom('call_event').select('number').where('call_sid', '=', sid).execute()
        return rows.filter(row => row.number === number).length >= count
      }),
  }
}
