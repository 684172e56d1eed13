import { makeClientCredential } from '../../core/runtime/client-token.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { VERBS } from '../../markup/verbs/index.ts'
import type { Shape } from '../../markup/verbs/shape.ts'
import { authorize, openAgent } from '../support/agents.ts'
import t from '../support/harness/index.ts'
import { freeBlock } from '../support/ports.ts'
import { openSoftphone } from '../support/softphone.ts'
import { addTenant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { formOf, routeToApplication, world } from '../support/world.ts'
import { openTrap } from './traps.ts'

/**
 * Tests that no verb reaches another tenant's resources or a forbidden address. The thief runs each verb and noun of
 * the registry on its own calls, with each target that it must not reach. It then routes a number to each trap through
 * a trunk, and sends each target in a REFER. New verbs, nouns and attributes are covered automatically.
 */

const CARRIER = '127.0.0.71'
const PRIVATE = '127.0.0.72'
const THIEF = '127.0.0.73'
const RIVAL = '127.0.0.74'
/** A number at which the sandbox carrier answers and does not hang up. */
const ANSWERS = '+2348030000008'
/** Concurrent calls, within the demo project's ceilings, which this test does not try. */
const AT_ONCE = 50
const SECONDS_EACH = 3
/** RTP ports. There are many, because ports are quarantined after a call. */
const PORTS = 2000

t.test('no verb reaches another tenant’s resources or a forbidden address', async t => {
  const { first, last } = await freeBlock(PORTS)
  const w = await world(t, {
    STROWGER_RTP_PORTS: `${first}-${last}`,
    STROWGER_ALLOW_PRIVATE_PEERS: `127.0.0.1/32,${THIEF}/32,${RIVAL}/32`,
    STROWGER_ALLOW_PRIVATE_WEBHOOKS: '127.0.0.1/32',
  })
  const { db } = w.state
  const traps = [await openTrap(t, CARRIER), await openTrap(t, PRIVATE)]
  const [carrier, hidden] = traps.map(({ address, port }) => `${address}:${port}`)
  await db
    .insertInto('carrier')
    .values({
      ...{ id: 'car_far', name: 'Far', codecs: '["PCMU"]', enabled: 1, sandbox: 0, revision: 1 },
      created_at: new Date().toISOString(),
    })
    .execute()
  await db
    .insertInto('carrier_source')
    .values({ id: 'src_far', carrier_id: 'car_far', cidr: `${CARRIER}/32` })
    .execute()

  const number = '+2342019999901'
  const rival = await addTenant(w.state, w.master_key, [number])
  const web = await webServer(t, {
    '/number': '<Response><Pause length="1"/></Response>',
    '/heard': { status: 204 },
    '/thief': { status: 204 },
  })
  const application = await routeToApplication(w.state, rival.project_id, number, `${web.url}/number`)
  const account = `${w.base_url}/2010-04-01/Accounts/${rival.account_sid}`
  const basic = `Basic ${Buffer.from(`${rival.account_sid}:${rival.auth_token}`).toString('base64')}`
  const callOfRival = async (InlineMarkup: string): Promise<string> => {
    const body = formOf({ To: ANSWERS, From: number, InlineMarkup })
    const answer = await fetch(`${account}/Calls.json`, { method: 'POST', headers: { authorization: basic }, body })
    t.equal(answer.status, 201, 'the rival’s call is accepted')
    return ((await answer.json()) as { sid: string }).sid
  }
  const told = `statusCallback="${web.url}/heard" statusCallbackEvent="join leave mute"`
  const meeting = await callOfRival(`<Response><Dial><Conference ${told}>boardroom</Conference></Dial></Response>`)
  const waiting = await callOfRival(`<Response><Enqueue action="${web.url}/heard">support</Enqueue></Response>`)
  await until('the rival is in its room', () => web.requests.some(({ path }) => path === '/heard'))
  const before = web.requests.filter(({ path }) => path === '/heard').length

  const rita = await openAgent(t, { ip: RIVAL })
  const made = await fetch(`${w.base_url}/v1/trunks`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${rival.api_key}`,
      'content-type': 'application/json',
      'idempotency-key': 'rival',
    },
    body: JSON.stringify({
      ...{ name: 'Rival', direction: 'both', auth_mode: 'digest', sources: [], codecs: ['PCMU'] },
      ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
      targets: [{ sip_uri: `sip:${RIVAL}:${rita.port}`, transport: 'udp', priority: 1, weight: 1 }],
    }),
  })
  t.equal(made.status, 201)
  const { trunk } = (await made.json()) as { trunk: { id: string; signaling_fqdn: string } }
  const credential = makeClientCredential(
    { client: 'rita', caller: null, expires_at_seconds: Math.floor(Date.now() / 1000) + 600, allowed: ['in', 'out'] },
    { project_id: rival.project_id, domain: 'localhost', auth_token: rival.auth_token },
  )
  const register = (headers: Record<string, string>) =>
    rita.ua.request('REGISTER', `sip:${credential.domain}`, {
      hop: `sip:${w.sip.host}:${w.sip.port}`,
      to: `<sip:rita@${credential.domain}>`,
      headers: { Expires: '300', Contact: `<sip:rita@${RIVAL}:${rita.port}>`, ...headers },
    })
  const { username, password } = credential
  const facts = { username, password, uri: `sip:${credential.domain}`, method: 'REGISTER' }
  t.equal((await register({ Authorization: authorize(await register({}), facts) }))?.status, 200)

  /** Targets that the thief must not reach, as a document names them. */
  const targets: Readonly<Record<string, string>> = {
    'the rival’s number': number,
    'the rival’s trunk': `sip:someone@${trunk.signaling_fqdn}`,
    'the id of the rival’s trunk': trunk.id,
    'the rival’s client': 'rita',
    'the rival’s queue': 'support',
    'the rival’s conference': 'boardroom',
    'the rival’s application': application,
    'the rival’s call': meeting,
    'a carrier': `sip:+2348030004711@${carrier}`,
    'a carrier by TCP': `sip:+2348030004711@${carrier};transport=tcp`,
    'a carrier by maddr': `sip:x@198.51.100.1:${traps[0]?.port};maddr=${CARRIER}`,
    'a private address': `sip:x@${hidden}`,
    'a private address by TCP': `sip:x@${hidden};transport=tcp`,
    'our own listener': `sip:x@${w.sip.host}:${w.sip.port}`,
    'a private web server': `http://${hidden}/`,
    'a private WebSocket': `ws://${hidden}/`,
  }
  const documents = Object.entries(targets).flatMap(([what, target]) =>
    places(target).map(({ place, document }) => ({ name: `${place}: ${what}`, document })),
  )
  t.ok(documents.length > 200, `${documents.length} documents`)

  const [own = '', thief_number = ''] = w.numbers
  const queue = [...documents]
  const sids: string[] = []
  const runNext = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const form = { To: ANSWERS, From: own, InlineMarkup: next.document, TimeLimit: String(SECONDS_EACH) }
      const answer = await w.voice('POST', '/Calls.json', form)
      if (answer.status !== 201) throw new Error(`${next.name}: ${JSON.stringify(answer.body)}\n${next.document}`)
      sids.push(answer.body.sid)
      const { status } = await w.ended(answer.body.sid)
      if (status !== 'completed') t.fail(`${next.name}: the call was ${status}, so its document never ran`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, runNext))

  const phone = await openSoftphone(t, THIEF)
  await w.addTrunk(THIEF)
  const bad = traps.map(({ address, port }) => ({ sip_uri: `sip:${address}:${port}`, transport: 'udp' }))
  for (const [index, target] of bad.entries()) {
    const { status, body } = await w.manage(
      'POST',
      '/trunks',
      {
        ...{ name: `Trap ${index}`, direction: 'both', auth_mode: 'digest', sources: [], codecs: ['PCMU'] },
        ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
        targets: [{ ...target, priority: 1, weight: 1 }],
      },
      { 'idempotency-key': `trap-${index}` },
    )
    t.equal(status, 201, 'the API stores such an address; nothing may be sent to it')
    await w.state.transaction(async trx => {
      await trx
        .updateTable('number')
        .set(eb => ({ route_kind: 'trunk', route_id: body.trunk.id, revision: eb('revision', '+', 1) }))
        .where('e164', '=', thief_number)
        .execute()
      await bumpConfiguration(trx)
    })
    await until('the route is applied', () =>
      db
        .selectFrom('apply_report')
        .innerJoin('number', 'number.id', 'apply_report.resource_id')
        .select('number.id')
        .where('number.e164', '=', thief_number)
        .whereRef('apply_report.revision', '=', 'number.revision')
        .executeTakeFirst(),
    )
    const line = await phone.dial(`sip:${thief_number}@${w.sip.host}:${w.sip.port}`, { from: own })
    await line.over()
    t.not(line.final, 200, 'a call to a number whose trunk has such a target fails')
  }
  const referTo = async ([what, target]: readonly [string, string]): Promise<void> => {
    const uri = /^(sip|http|ws):/.test(target) ? target : `sip:${target}@${w.sip.host}`
    const line = await phone.dial(`sip:${ANSWERS}@${w.sip.host}:${w.sip.port}`, { from: own })
    await Promise.race([line.answered(), line.over()])
    t.equal(line.final, 200, `a call to send a REFER to ${what}`)
    const answer = await line.send('REFER', { headers: { 'Refer-To': `<${uri}>` } })
    const refused = (answer?.status ?? 0) >= 300
    await until('the REFER has an outcome', () => refused || line.ended !== null || notified(line))
    line.hangUp()
    await line.over()
  }
  await Promise.all(Object.entries(targets).map(referTo))

  t.same(
    traps.flatMap(({ caught }) => caught),
    [],
    'no packet reached the carrier’s address or the private one',
  )
  t.same(
    rita.invites.map(({ uri }) => uri),
    [],
    'no call reached the rival’s client or trunk',
  )
  const to_us = await db
    .selectFrom('call_attempt')
    .select('target')
    .where('address', '=', `${w.sip.host}:${w.sip.port}`)
    .execute()
  t.same(to_us, [], 'no call went to our own listener')
  const heard = web.requests.filter(({ path }) => path === '/heard').slice(before)
  t.same(heard, [], 'no call joined the rival’s conference or took its queued caller')
  const ended = await db
    .selectFrom('call')
    .select(['sid', 'status', 'reason', 'ended_by'])
    .where('sid', 'in', [meeting, waiting])
    .where('ended_at', 'is not', null)
    .execute()
  t.same(ended, [], 'the rival’s calls continue')
  const foreign = web.requests.filter(
    ({ path, fields }) => path === '/number' && sids.includes(fields.get('CallSid') ?? ''),
  )
  t.same(foreign, [], 'the rival’s document ran on no call of the thief')
  const accounts = new Set(
    web.requests.filter(({ path }) => path !== '/thief').map(({ fields }) => fields.get('AccountSid')),
  )
  t.same([...accounts], [rival.account_sid], 'the rival’s web server received requests only about its own calls')
  for (const sid of [meeting, waiting])
    await fetch(`${account}/Calls/${sid}.json`, {
      method: 'POST',
      headers: { authorization: basic },
      body: formOf({ Status: 'completed' }),
    })
})

/** Returns a document for every place of the registry where a target of this form may stand. */
function places(target: string): { place: string; document: string }[] {
  const is_url = /^(http|ws):/.test(target)
  return VERBS.flatMap(verb => [
    ...textPlaces(verb, []).map(path => ({ place: path.join(' '), document: nested(path, target) })),
    ...(is_url ? urlPlaces(verb) : []).map(({ element, attribute }) => ({
      place: `${element.join(' ')} ${attribute}`,
      document: nested(element, harmless(element), ` ${attribute}="${escaped(target)}"`),
    })),
  ])
}

/** Returns the paths of elements with text content, from the verb inwards. */
function textPlaces(shape: Shape, above: readonly string[]): string[][] {
  const path = [...above, shape.name]
  const own = shape.content === 'text' ? [path] : []
  return path.length > 3 ? own : [...own, ...shape.nouns.flatMap(noun => textPlaces(noun, path))]
}

/** Returns the attributes whose URLs the platform requests. */
function urlPlaces(shape: Shape): { element: string[]; attribute: string }[] {
  return Object.entries(shape.attributes)
    .filter(([, type]) => /URL/.test(type.values) && !type.ignored)
    .map(([attribute]) => ({ element: [shape.name], attribute }))
}

/** Returns content with which the element runs far enough to use its attribute. */
const harmless = ([name = '']: readonly string[]): string => (name === 'Dial' ? '+2348030000005' : '')

const nested = (path: readonly string[], text: string, attributes = ''): string => {
  const [outer = '', ...inner] = path
  const open = path.length === 1 ? `<${outer}${attributes}>${escaped(text)}` : `<${outer}>${bare(inner, text)}`
  return `<Response>${open}</${outer}></Response>`
}
const bare = ([outer = '', ...inner]: readonly string[], text: string): string =>
  outer === '' ? escaped(text) : `<${outer}>${bare(inner, text)}</${outer}>`

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

const notified = (line: {
  readonly requests: readonly { readonly message: { readonly method: string }; readonly body: string }[]
}) => line.requests.some(({ message, body }) => message.method === 'NOTIFY' && !/^SIP\/2\.0 1/.test(body))
