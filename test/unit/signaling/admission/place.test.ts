import { addApplication, addProject, addTrunk, admissionNode, placed } from '../../../support/admission-node.ts'
import { type AdmissionWorld, admissionWorld } from '../../../support/admission-world.ts'
import t, { type Test } from '../../../support/harness/index.ts'

// What the INVITEs of a document's Dial show and count. The caller is another customer of the platform.

const CALLER = '+2342010000001'
const APPLICATION = '+2342010000009'
const DESK = '+2342010000010'

async function world(t: Test): Promise<AdmissionWorld> {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  await addProject(w, 'prj_2')
  await addTrunk(w, { id: 'trk_2', project_id: 'prj_2', host: 2 })
  for (const id of ['app_1', 'app_2']) await addApplication(w, id, 'prj_2')
  const routed = (route_kind: 'trunk' | 'voice_application', route_id: string) => ({
    ...{ project_id: 'prj_2', route_kind, route_id },
  })
  await w.number(APPLICATION, routed('voice_application', 'app_1'))
  await w.number(DESK, routed('trunk', 'trk_2'))
  return w
}

const TARGETS = {
  number: { kind: 'number', number: DESK },
  client: { kind: 'client', identity: 'ada', parameters: {} },
  sip: {
    kind: 'sip',
    uris: [{ uri: 'sip:desk@192.0.2.9', username: null, password: null, priority: 0, weight: 1 }],
    headers: [],
  },
} as const
const INNER = { kind: 'application', id: 'app_2', parameters: {} } as const

t.test('a caller who withholds the number is hidden from whom another customer’s document dials', async t => {
  const w = await world(t)
  const node = await admissionNode(w)
  const called = async (headers: Readonly<Record<string, string>>) =>
    placed(await node.invite(node.trunk(w.trunk_id), APPLICATION, { from: `<sip:${CALLER}@pbx.example>`, ...headers }))
  const parent = await called({ privacy: 'id' })
  t.match(parent.row, { project_id: 'prj_2', foreign_caller: 1, from_number: CALLER })
  const inner = placed(await node.dial(parent, INNER))
  const earlier = { row: { ...parent.row, request: JSON.stringify({ sip: { restricted: true } }) } }
  for (const [document, call] of [
    ['its document', parent],
    ['the document that this one dials', inner],
    ['a call of an earlier version', earlier],
  ] as const)
    for (const [kind, target] of Object.entries(TARGETS)) {
      const { hops } = placed(await node.dial(call, target))
      const headers = hops.map(hop => hop.headers)
      t.match(
        headers,
        [{ From: /^"Anonymous" <sip:anonymous@anonymous\.invalid>/, Privacy: 'id' }],
        `${document}: ${kind}`,
      )
      t.notMatch(JSON.stringify(headers), CALLER.slice(1), `${document}: ${kind}`)
    }
  for (const [kind, target] of Object.entries(TARGETS)) {
    const { hops } = placed(await node.dial(await called({}), target))
    t.match(hops[0]?.headers['From'], CALLER, `${kind}: who withholds nothing is shown`)
  }
})

t.test('Max-Forwards goes down from an INVITE to what its document dials, and ends it at 0', async t => {
  const w = await world(t)
  const node = await admissionNode(w)
  const from = `<sip:${CALLER}@pbx.example>`
  const called = async (hops: string) =>
    placed(await node.invite(node.trunk(w.trunk_id), APPLICATION, { from, 'max-forwards': hops }))
  const leaves = async (parent: Parameters<typeof node.dial>[0], target: Parameters<typeof node.dial>[1]) =>
    placed(await node.dial(parent, target)).hops.map(hop => hop.headers['Max-Forwards'])
  const parent = await called('5')
  for (const target of Object.values(TARGETS)) t.same(await leaves(parent, target), ['4'], target.kind)
  t.same(await leaves(placed(await node.dial(parent, INNER)), TARGETS.number), ['3'], 'through a second document')

  const last = await called('1')
  const rows = async () => (await w.state.db.selectFrom('call').select('sid').execute()).length
  const known = await rows()
  for (const target of [...Object.values(TARGETS), INNER])
    t.match(await node.dial(last, target), { sip_code: 483, detail: 'too_many_hops' }, target.kind)
  t.equal(await rows(), known, 'nobody is called')

  const ours = { row: { ...parent.row, request: null } }
  t.same(await leaves(ours, TARGETS.number), ['70'], 'a call of our own')
})
