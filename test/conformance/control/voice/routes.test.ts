import { NUMBERS, voiceErrorBody } from '../../../../control/voice/errors.ts'
import { VOICE_ROUTES } from '../../../../control/voice/index.ts'
import type { VoiceRoute } from '../../../../control/voice/route.ts'
import { REASONS, type Reason, voiceErrorOf } from '../../../../core/domain/reasons/index.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { type ControlPlane, controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'

/** Tests the rules of the voice-calls API on every endpoint of the registry. */

const SIDS: Readonly<Record<string, () => string>> = {
  call_sid: newId.call,
  recording_sid: newId.recording,
  conference: newId.conference,
  participant: newId.call,
  queue_sid: () => newId.sid('QU'),
  member: newId.call,
  activity: () => newId.sid('MZ'),
  subscription_sid: () => newId.sid('ZY'),
  notification_sid: () => newId.sid('NO'),
  number_sid: newId.number,
  application_sid: newId.application,
  call_recording: newId.recording,
}

/** Returns the path of a route with unknown sids. */
const unknownPath = (route: VoiceRoute): string =>
  route.path.replace(/\{(\w+)\}/g, (_, name: string) => SIDS[name]?.() ?? name) + route.suffix

const spec = (path: string): VoiceRoute => {
  const route = VOICE_ROUTES.find(one => one.path === path && !one.extended)
  if (!route) throw new Error(`the specification has no ${path}`)
  return route
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

t.test('the registry matches the table of the specification', async t => {
  const spec = VOICE_ROUTES.filter(({ extended }) => !extended)
  t.same(spec.map(({ method, path, suffix }) => `${method} ${path}${suffix}`).sort(), [
    'DELETE /Calls/{call_sid}.json',
    'GET /Calls.json',
    'GET /Calls/{call_sid}.json',
    'GET /Calls/{call_sid}/Events.json',
    'GET /Calls/{call_sid}/Recordings.json',
    'GET /Recordings/{recording_sid}.json',
    'GET /Recordings/{recording_sid}.wav',
    'POST /Calls.json',
    'POST /Calls/{call_sid}.json',
  ])
  for (const { path, summary } of VOICE_ROUTES) t.ok(summary, path)
})

/** The form of a route's example. A value that begins with `$` is the caller's number. */
const formOf = ({ method, example = { Status: 'completed' } }: VoiceRoute) =>
  method === 'POST'
    ? Object.fromEntries(Object.entries(example).map(([name, value]) => [name, value.replace(/^\$.*/, OWN_NUMBER)]))
    : undefined

const OWN_NUMBER = '+2342010000001'

const BOUNDLESS = { burst: 1_000_000, per_second: 1_000_000 }

/** Serves every route of the registry to the demo account. */
const extend = (w: ControlPlane) => w.state.db.updateTable('voice_account').set({ voice_api: 'extended' }).execute()

t.test('an account without the wider API gets the table of the specification, and 404 for all else', async t => {
  const w = await controlPlane(t)
  for (const route of VOICE_ROUTES.filter(({ extended }) => extended)) {
    const answer = await w.voice(route.method, unknownPath(route), formOf(route))
    const refused = { status: 404, body: { code: 'voice_route_not_proxied' } }
    t.match(answer, refused, `${route.method} ${route.path}`)
  }
  // A method that no account has is another matter: the path is served.
  const { status, headers } = await w.voice('PUT', unknownPath(spec('/Calls/{call_sid}/Recordings')))
  t.match([status, headers.get('allow')], [405, 'GET'])
})

t.test('every endpoint refuses wrong credentials, methods and sids', async t => {
  const w = await controlPlane(t, { rate_limit: BOUNDLESS, bad_credentials: BOUNDLESS })
  await extend(w)
  await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(Date.now()) })
  const { account_sid, auth_token } = w.demo
  const basic = (user: string, password: string) => ({
    Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
  })
  for (const route of VOICE_ROUTES) {
    const { method } = route
    const at = `/2010-04-01/Accounts/${account_sid}${unknownPath(route)}`
    const ask = (headers: Record<string, string>, asked = method as string, path = at) =>
      w.ask(asked, path, { key: null, headers })
    const name = `${method} ${route.path}${route.suffix}`
    t.match(await ask({}), { status: 401, body: { code: 'unauthenticated' } }, `${name}: no credential`)
    t.match(await ask({ Authorization: `Bearer ${w.key}` }), { status: 401, body: { code: 'unauthenticated' } }, name)
    t.match(await ask(basic(account_sid, 'wrong')), { status: 401, body: { code: 20003 } }, `${name}: wrong token`)
    const other = newId.account()
    t.match(await ask(basic(other, auth_token)), { status: 401, body: { code: 'unauthenticated' } }, name)
    const elsewhere = at.replace(account_sid, other)
    t.match(
      await ask(basic(other, auth_token), method, elsewhere),
      { status: 404, body: { code: 'voice_route_not_proxied' } },
      `${name}: unknown account`,
    )
    const served = VOICE_ROUTES.filter(({ path, suffix }) => path === route.path && suffix === route.suffix)
    for (const asked of METHODS.filter(one => !served.some(known => known.method === one))) {
      const refused = await ask(basic(account_sid, auth_token), asked)
      t.match(refused, { status: 405, body: { code: 20004 } }, `${name}: ${asked}`)
      for (const known of served) t.match(refused.headers.get('allow'), known.method)
    }
    if (!route.path.includes('{')) continue
    const form = formOf(route)
    t.match(
      await w.voice(method, unknownPath(route), form),
      { status: 404, body: { code: 20404 } },
      `${name}: unknown sid`,
    )
    // A conference begins with who is added to it by any name.
    if (name === 'POST /Conferences/{conference}/Participants.json') continue
    const shapeless = unknownPath(route).replace(/[A-Z]{2}[0-9a-f]{32}/, sid => sid.toUpperCase())
    t.match(await w.voice(method, shapeless, form), { status: 404, body: { code: 20404 } }, `${name}: not lowercase`)
  }
})

t.test('no endpoint shows an account the call of another account', async t => {
  const w = await controlPlane(t, { rate_limit: BOUNDLESS, bad_credentials: BOUNDLESS })
  await extend(w)
  await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(Date.now()) })
  const form = { To: '+2348030000001', From: w.demo.numbers[0] ?? '', Twiml: '<Response/>' }
  const { sid } = (await w.voice('POST', '/Calls.json', form)).body
  await w.state.db.updateTable('call').set({ account_sid: newId.account() }).where('sid', '=', sid).execute()
  for (const route of VOICE_ROUTES.filter(({ path }) => path.includes('{call_sid}'))) {
    const path = route.path.replace('{call_sid}', sid) + route.suffix
    const answer = await w.voice(route.method, path, formOf(route))
    t.match(answer, { status: 404, body: { code: 20404 } }, `${route.method} ${route.path}`)
  }
  t.same((await w.voice('GET', '/Calls.json')).body.calls, [])
})

t.test('every numbered error has the four documented keys and one HTTP status', async t => {
  const context = { base_url: 'https://voice.example.test', request_id: 'req_1' }
  for (const [code, status] of Object.entries(NUMBERS)) {
    const refusal = { kind: 'numbered', code: Number(code), status, message: 'x' } as const
    t.same(voiceErrorBody(refusal, context), {
      status,
      type: 'application/json; charset=utf-8',
      body: { code: Number(code), message: 'x', more_info: `https://voice.example.test/docs/errors/${code}`, status },
    })
  }
  for (const [reason, { voice, voice_http }] of Object.entries(REASONS)) {
    if (voice === null) continue
    t.equal(typeof voice_http, 'number', `${reason} has an HTTP status as well as a number`)
    t.match(voiceErrorOf(reason as Reason), { code: voice, status: voice_http ?? 0, details: { reason } })
  }
})
