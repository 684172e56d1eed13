import { rateRow } from '../../../../bench/admission/rows.ts'
import { askAdmission } from '../../../../core/state/calls/leases.ts'
import { addProject, addTrunk, admissionNode, placed } from '../../../support/admission-node.ts'
import { type AdmissionWorld, admissionWorld } from '../../../support/admission-world.ts'
import t, { type Test } from '../../../support/harness/index.ts'

// Which number an INVITE calls. Lookup, row, decision and the INVITE that leaves name the same one.

const GB_TRUNK = 'trk_gb'
const GB_CALLER = '+442079460000'
/** Routed to the second trunk of the project, which is of Nigeria. */
const GB_NUMBER = '+442079460001'
/** Routed to the trunk of the United Kingdom. */
const NG_NUMBER = '+2342010000005'
/** Of another customer, and a number of the United Kingdom without its country code. */
const THEIRS = '+2348001234567'

async function world(t: Test): Promise<AdmissionWorld> {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const { project_id } = w
  await addTrunk(w, { id: GB_TRUNK, project_id, host: 2, country: 'GB' })
  await addTrunk(w, { id: 'trk_ng', project_id, host: 3 })
  await addProject(w, 'prj_2')
  await addTrunk(w, { id: 'trk_theirs', project_id: 'prj_2', host: 4 })
  await w.number(GB_CALLER, { route_kind: 'trunk', route_id: GB_TRUNK })
  await w.number(GB_NUMBER, { route_kind: 'trunk', route_id: 'trk_ng' })
  await w.number(NG_NUMBER, { route_kind: 'trunk', route_id: GB_TRUNK })
  await w.number(THEIRS, { project_id: 'prj_2', route_kind: 'trunk', route_id: 'trk_theirs' })
  await w.state.db
    .insertInto('rate')
    .values(rateRow({ id: 'rat_gb', price_book_id: 'pbk_1', prefix: '44', label: 'United Kingdom' }))
    .execute()
  return w
}

t.test('a number that a trunk’s peer dials nationally is one of the trunk’s country, wherever it appears', async t => {
  const w = await world(t)
  const node = await admissionNode(w)
  const from = '<sip:02079460000@pbx.example>'
  const trunk = node.trunk(GB_TRUNK)

  t.test('it does not ring the customer whose number has these digits in our own country', async t => {
    const diversion = '<sip:02079460000@pbx.example>;reason=no-answer'
    const { row, hops } = placed(await node.invite(trunk, '08001234567', { from, diversion }))
    const ours = { project_id: w.project_id, direction: 'outbound', to_number: '+448001234567' }
    t.match(row, { ...ours, from_number: GB_CALLER })
    t.match(hops, [{ uri: 'sip:+448001234567@127.0.0.2', headers: { From: `<sip:${GB_CALLER}@strowger.test>` } }])
    t.match(hops[0]?.headers['Diversion'], GB_CALLER)
    t.equal(hops.length, 1)
    // A redirect that names the dialled number only names another host.
    t.same(hops[0]?.diverted?.('sip:08001234567@127.0.0.3'), {})
  })

  t.test('a number of the project stays on the platform', async t => {
    const { row, hops } = placed(await node.invite(trunk, '02079460001', { from }))
    t.match(row, { direction: 'inbound', trunk_id: 'trk_ng', to_number: GB_NUMBER, from_number: GB_CALLER })
    t.match(hops, [{ uri: `sip:${GB_NUMBER}@127.0.0.3`, headers: { From: `<sip:${GB_CALLER}@strowger.test>` } }])
    const outcome = await askAdmission(
      w.state.db,
      w.request({ service: { type: 'trunk', id: GB_TRUNK }, called: '02079460001', caller: GB_CALLER }),
    )
    t.match(outcome, { admitted: true, called: { e164: GB_NUMBER }, price: null }, 'the dry run says so')
  })

  t.test('a transfer to it calls the same number', async t => {
    const parent = placed(await node.invite(trunk, '+448001234567', { from }))
    const refer = async (number: string) => placed(await node.refer(GB_TRUNK, parent, `<sip:${number}@pbx.example>`))
    const away = await refer('08001234567')
    t.match(away.row, { project_id: w.project_id, direction: 'outbound', to_number: '+448001234567' })
    t.match(away.hops, [{ uri: 'sip:+448001234567@127.0.0.2' }])
    const near = await refer('02079460001')
    t.match(near.row, { direction: 'inbound', trunk_id: 'trk_ng', to_number: GB_NUMBER })
    t.match(near.hops, [{ uri: `sip:${GB_NUMBER}@127.0.0.3` }])
  })
})

t.test('the country of the called trunk changes nothing of what somebody else has dialled', async t => {
  const node = await admissionNode(await world(t))
  const national = { from: '<sip:08031234567@carrier.example>' }
  const wanted = (caller: string) => ({
    row: { trunk_id: GB_TRUNK, to_number: NG_NUMBER, from_number: caller },
    hops: [{ uri: `sip:${NG_NUMBER}@127.0.0.2`, headers: { From: `<sip:${caller}@strowger.test>` } }],
  })
  t.match(placed(await node.invite(node.carrier(), '02010000005', national)), wanted('+2348031234567'), 'a carrier')
  const trunk = await node.invite(node.trunk('trk_ng'), '02010000005', national)
  t.match(placed(trunk), wanted('+2348031234567'), 'a trunk of another country')
  const client = await node.invite(node.client('prj_1', '+2342010000001'), '02010000005')
  t.match(placed(client), wanted('+2342010000001'), 'a client')
  const dialled = await node.dial(placed(client), { kind: 'number', number: '02010000005' })
  t.match(placed(dialled).hops, wanted('+2342010000001').hops, 'a document')
})

t.test('a diverted call to our contact at a carrier is for the contact, unless To names a number of ours', async t => {
  const w = await world(t)
  const node = await admissionNode(w)
  const carrier = node.carrier({ registration: { contact_user: NG_NUMBER.slice(1) } })
  const from = '<sip:+2348031234567@carrier.example>'
  const calls = (to: string, headers: Record<string, string> = {}) =>
    node.invite(carrier, NG_NUMBER.slice(1), { from, to: `<sip:${to}@carrier.example>`, ...headers })
  const rings = (e164: string) => ({ row: { to_number: e164 } })
  t.match(placed(await calls('+2348055555555')), rings(NG_NUMBER), 'dialled first: a mobile telephone')
  t.match(placed(await calls(GB_NUMBER)), rings(GB_NUMBER), 'an account with several numbers')
  t.match(placed(await calls(NG_NUMBER)), rings(NG_NUMBER))
  const named = { 'p-called-party-id': `<sip:${GB_NUMBER}@carrier.example>` }
  t.match(placed(await calls('+2348055555555', named)), rings(GB_NUMBER))
  t.equal(await calls('x', { 'p-called-party-id': '<sip:+2348055555555@carrier.example>' }), 'number_unallocated')
  const user = node.carrier({ registration: { contact_user: 'acme' } })
  const to = (number: string) => node.invite(user, 'acme', { from, to: `<sip:${number}@carrier.example>` })
  t.match(placed(await to(GB_NUMBER)), rings(GB_NUMBER))
  t.equal(await to('+2348055555555'), 'number_unallocated')
})
