import { execFile } from 'node:child_process'
import { lastCall } from '../../support/b2bua-world.ts'
import { addCarrier } from '../../support/carriers.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { rated } from '../../support/rated.ts'
import { type Line, openSoftphone } from '../../support/softphone.ts'
import { until } from '../../support/wait.ts'
import { type World, world } from '../../support/world.ts'
import { kamailio } from './proxy.ts'

// Debian's Kamailio in front of a customer's telephones, with Record-Route, and as a carrier with digest and
// registration.

const PASSWORD = 'S3cret of the carrier'
const WORLD = '+2348030004711'

t.test('Kamailio', async t => {
  const w = await world(t)
  await rated(w)
  await t.test('as a customer’s proxy: calls both ways keep its Record-Route, are held, resumed and ended', t =>
    asProxy(t, w),
  )
  await t.test('as a carrier: it is registered with, challenges our calls, and calls our contact', t => asCarrier(t, w))
})

/** Runs a command whose standard input is the password. */
const register = (w: World, words: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const env = { PATH: process.env['PATH'] ?? '', STROWGER_DATA: w.data_dir }
    const child = execFile('bin/strowger', words, { env }, (error, _stdout, stderr) =>
      error ? reject(new Error(stderr)) : resolve(),
    )
    child.stdin?.end(`${PASSWORD}\n`)
  })

async function hearEachOther(one: Line, other: Line): Promise<void> {
  const stops = [one.hum(500), other.hum(900)]
  await Promise.all([one.hears(900), other.hears(500)])
  await Promise.all(stops.map(stop => stop()))
}

async function asProxy(t: Test, w: World): Promise<void> {
  const [desk, caller] = [await openSoftphone(t, '127.0.5.3'), await openSoftphone(t, '127.0.5.4')]
  const proxy = await kamailio(t, '127.0.5.2', () =>
    [
      '  record_route();',
      `  if (src_ip == ${w.sip.host} && src_port == ${w.sip.port}) { $du = "sip:${desk.address}:${desk.port}"; }`,
      `  else { $du = "sip:${w.sip.host}:${w.sip.port}"; }`,
      '  t_relay();',
    ].join('\n'),
  )
  const own = w.numbers[1] ?? ''
  const trunk_id = await w.addTrunk(proxy.host, {
    targets: [{ sip_uri: `sip:${proxy.host}:${proxy.port}`, transport: 'udp', priority: 1, weight: 1 }],
    source_validation: 'relaxed',
  })
  await w.routeToTrunk(w.numbers[2] ?? '', trunk_id)
  const near = await caller.dial(`sip:${w.numbers[2]}@${proxy.host}:${proxy.port}`, { from: own })
  const far = await desk.incoming(w.numbers[2] ?? '')
  t.match(far.header('record-route'), proxy.host, 'the call came through the proxy')
  const acknowledged = far.answer()
  await near.answered()
  await acknowledged
  await hearEachOther(near, far)
  t.match(await near.reoffer('sendonly'), /a=recvonly/)
  t.match(await near.reoffer(), /a=sendrecv/)
  await hearEachOther(near, far)
  far.hangUp()
  t.equal(await near.over(), 'peer')
  const record = await until('the call has ended', async () => {
    const call = await lastCall(w)
    return call.ended_at === null ? undefined : call
  })
  t.match(record, { status: 'completed', ended_by: 'called', trunk_id })
}

async function asCarrier(t: Test, w: World): Promise<void> {
  const subscriber = await openSoftphone(t, '127.0.6.3')
  const peer = await openSoftphone(t, '127.0.6.4')
  const carrier = await kamailio(t, '127.0.6.2', ({ host, port }) =>
    [
      '  record_route();',
      `  if (src_ip == ${subscriber.address}) {`,
      '    $var(number) = $rU; $rU = "acme";',
      '    if (!lookup("location")) { sl_send_reply("480", "Not registered"); exit; }',
      '    t_relay(); exit;',
      '  }',
      `  if (!pv_www_authenticate("${host}", "${PASSWORD}", "0")) {`,
      `    if (is_method("REGISTER")) { www_challenge("${host}", "0"); exit; }`,
      '  }',
      '  if (is_method("REGISTER")) { save("location"); exit; }',
      `  if (!pv_proxy_authenticate("${host}", "${PASSWORD}", "0")) { proxy_challenge("${host}", "0"); exit; }`,
      '  consume_credentials();',
      `  $du = "sip:${subscriber.address}:${subscriber.port}";`,
      `  xlog("L_ERR", "interop: relayed by ${port}\\n");`,
      '  t_relay();',
    ].join('\n'),
  )
  const now = new Date().toISOString()
  await w.state.db.updateTable('carrier').set({ enabled: 0 }).where('sandbox', '=', 1).execute()
  const carrier_id = await addCarrier(
    w.state,
    {
      ...{ name: 'Kamailio', codecs: ['PCMU'], sources: [`${carrier.host}/32`] },
      targets: [{ sip_uri: `sip:${carrier.host}:${carrier.port}`, transport: 'udp', priority: 1, weight: 1 }],
      routes: [{ prefix: '', priority: 1, cost_minor: 0 }],
    },
    now,
  )
  const registrar = `sip:${carrier.host}:${carrier.port}`
  await register(w, [
    'carriers',
    'register',
    carrier_id,
    '--registrar',
    registrar,
    '--username',
    'acme',
    '--expires',
    '60',
  ])
  await until('we are registered', async () => {
    const { state } = (await w.state.db
      .selectFrom('carrier_registration_state')
      .select('state')
      .where('carrier_id', '=', carrier_id)
      .executeTakeFirst()) ?? { state: null }
    return state === 'registered'
  })
  const trunk_id = await w.addTrunk(peer.address, {
    targets: [{ sip_uri: `sip:${peer.address}:${peer.port}`, transport: 'udp', priority: 1, weight: 1 }],
  })
  const near = await peer.dial(`sip:${WORLD}@${w.sip.host}:${w.sip.port}`, { from: w.numbers[3] ?? '' })
  const far = await subscriber.incoming(WORLD)
  const acknowledged = far.answer()
  await near.answered()
  await acknowledged
  await hearEachOther(near, far)
  near.hangUp()
  t.equal(await far.over(), 'peer')
  t.match(carrier.printed(), /interop: relayed/)
  t.match(await lastCall(w), { carrier_id })

  const number = w.numbers[4] ?? ''
  await w.routeToTrunk(number, trunk_id)
  const inbound = await subscriber.dial(`sip:${number}@${carrier.host}:${carrier.port}`, { from: '+2348030001111' })
  const desk = await peer.incoming(number)
  const taken = desk.answer()
  await inbound.answered()
  await taken
  await hearEachOther(inbound, desk)
  inbound.hangUp()
  t.equal(await desk.over(), 'peer')
  t.match(await lastCall(w), { carrier_id, origin: 'carrier', trunk_id })
}
