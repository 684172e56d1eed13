import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readCarriersFile } from '../../../bin/carriers-file.ts'
import { describePlan } from '../../../core/domain/carriers/plan.ts'
import { putSandboxCarrier } from '../../../core/state/configuration/bootstrap.ts'
import { applyCarriers, listCarriers } from '../../../core/state/configuration/carriers.ts'
import { openState } from '../../../core/state/index.ts'

// `strowger carriers apply FILE`: the file says how carriers stand, and the same file again changes nothing.

const folder = mkdtempSync(join(tmpdir(), 'strowger-carriers-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const now = '2026-11-21T12:00:00.000Z'
const LAGOS = {
  name: 'Lagos Telecom',
  sources: ['203.0.113.0/25'],
  targets: [{ sip_uri: 'sip:198.51.100.7', transport: 'tcp' }, { sip_uri: 'sip:198.51.100.8' }],
  routes: [{ prefix: '234', cost_minor: 90 }, { prefix: 'any' }],
}

function fileOf(content: unknown): string {
  const file = join(folder, 'carriers.json')
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

t.test('what is left out of a file is filled in, and a wrong file is refused with everything wrong in it', async t => {
  t.match(readCarriersFile(fileOf({ carriers: [LAGOS] })), [
    {
      enabled: true,
      codecs: ['PCMU', 'PCMA'],
      targets: [
        { transport: 'tcp', priority: 1, weight: 100 },
        { transport: 'udp', priority: 2 },
      ],
      routes: [
        { prefix: '234', priority: 10, cost_minor: 90 },
        { prefix: '', priority: 10, cost_minor: 0 },
      ],
    },
  ])
  const wrong: [unknown, RegExp][] = [
    [{ carriers: [{ ...LAGOS, colour: 'red' }] }, /\/carriers\/0\/colour is not a field/],
    [{ carriers: [{ ...LAGOS, name: '', codecs: ['MP3'] }] }, /\/carriers\/0\/name [\s\S]*\/carriers\/0\/codecs\/0 /],
    [{ carriers: [LAGOS, LAGOS] }, /\/carriers\/1\/name is there twice/],
    [{ carriers: [{ ...LAGOS, sources: ['203.0.113.0/24', 'nowhere'] }] }, /\/carriers\/0\/sources\/1 /],
    [{ carriers: [{ ...LAGOS, targets: [{ sip_uri: 'sip:a\r\nVia: x' }] }] }, /\/carriers\/0\/targets\/0\/sip_uri/],
    [{ carriers: [{ ...LAGOS, routes: [{ prefix: '+23x' }] }] }, /\/carriers\/0\/routes\/0\/prefix/],
    ['{ "carriers": [', /is not JSON/],
    [[], /\/ must be object/],
  ]
  for (const [content, message] of wrong) t.throws(() => readCarriersFile(fileOf(content)), { message })
  t.throws(() => readCarriersFile(join(folder, 'nothing.json')), { message: /cannot be read \(ENOENT\)/ })
})

t.test('a file is applied whole: added, changed, left alone, and pruned when that is asked for', async t => {
  const state = await openState({ data_dir: folder })
  t.teardown(() => state.close())
  await putSandboxCarrier(state, { host: '127.0.0.1', port: 5999, now })
  const revision = async () =>
    (await state.db.selectFrom('configuration').select('revision').executeTakeFirstOrThrow()).revision
  const apply = async (carriers: unknown[], options: { prune?: boolean; dry?: boolean } = {}) => {
    const wished = readCarriersFile(fileOf({ carriers }))
    return describePlan(await applyCarriers(state, wished, { prune: false, dry: false, now, ...options }))
  }
  const all = async () => (await listCarriers(state.db)).filter(({ sandbox }) => sandbox === 0)
  const before = await revision()
  const shown = await apply([LAGOS], { dry: true })
  t.same(await all(), [], 'shown, not done')
  t.same(await apply([LAGOS]), shown, 'done as it was shown')
  t.equal(await revision(), before + 1, 'signaling nodes apply it')
  const [made] = await all()
  t.match(made, { name: 'Lagos Telecom', enabled: 1, revision: 1, sources: ['203.0.113.0/25'] })
  t.same(await apply([LAGOS]), [], 'the same file again')
  t.equal(await revision(), before + 1)

  const routes = [{ prefix: '234', cost_minor: 80 }]
  const second = { ...LAGOS, enabled: false, codecs: ['PCMA'], targets: LAGOS.targets.slice(0, 1), routes }
  t.same(await apply([second]), [
    '~ carrier Lagos Telecom',
    '  ~ disabled',
    '  ~ codecs PCMU,PCMA to PCMA',
    '  - to sip:198.51.100.8 udp priority 2 weight 100',
    '  - route any priority 10 cost 0',
    '  - route 234 priority 10 cost 90',
    '  + route 234 priority 10 cost 80',
  ])
  const [changed] = await all()
  t.match(changed, { enabled: 0, codecs: ['PCMA'], revision: 2, routes: [{ cost_minor: 80 }] })
  t.equal(changed?.targets.length, 1)
  t.equal(changed?.targets[0]?.id, made?.targets[0]?.id, 'a target that stays keeps its id')

  t.same(await apply([]), [], 'who is not named stays')
  t.same(await apply([], { prune: true }), ['- carrier Lagos Telecom'])
  t.same(await all(), [])
  t.equal((await state.db.selectFrom('carrier').select('id').execute()).length, 1, 'the sandbox is none of them')
})
