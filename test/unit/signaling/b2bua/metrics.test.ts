import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { LegFigures } from '../../../../core/domain/calls/leg-figures.ts'
import { createMetrics } from '../../../../core/runtime/metrics.ts'
import { TREE } from '../../../../core/runtime/tree.ts'
import { createCallMetrics } from '../../../../signaling/b2bua/metrics.ts'
import t from '../../../support/harness/index.ts'

const CALL = { origin: 'trunk', status: 'completed', carrier_id: null, project_id: 'prj_1', seconds: 30 }
const LEG = { side: 'caller', mos: 4.2, jitter_ms: 12, packets_received: 990, packets_lost: 10 } as LegFigures

/** Set-up takes it from Debian's `prometheus`; machines without it check the same rules by the other tests. */
const PROMTOOL = ['/usr/bin/promtool', '/usr/local/bin/promtool', join(TREE, 'build/promtool/promtool')].find(
  existsSync,
)

function metrics() {
  let now_ms = 0
  const registry = createMetrics('test')
  const made = createCallMetrics(registry, { monotonic_ms: () => now_ms })
  const sample = async (text: string) => (await registry.metrics()).split('\n').filter(line => line.startsWith(text))
  return { registry, made, sample, after: (ms: number) => (now_ms += ms) }
}

t.test('ended calls count for their trunk, carrier and project; the number of series has a limit', async t => {
  const { made, sample, after } = metrics()
  made.ended({ ...CALL, trunk_id: 'trk_0', carrier_id: 'car_1' })
  made.ended({ ...CALL, trunk_id: 'trk_0', status: 'failed', seconds: 0 })
  for (let at = 1; at < 300; at++) made.ended({ ...CALL, trunk_id: `trk_${at}` })
  t.same(await sample('strowger_trunk_calls_total{trunk="trk_0"'), [
    'strowger_trunk_calls_total{trunk="trk_0",status="completed",process="test"} 1',
    'strowger_trunk_calls_total{trunk="trk_0",status="failed",process="test"} 1',
  ])
  t.same(await sample('strowger_trunk_call_seconds_total{trunk="trk_0"'), [
    'strowger_trunk_call_seconds_total{trunk="trk_0",process="test"} 30',
  ])
  t.same(await sample('strowger_carrier_calls_total{'), [
    'strowger_carrier_calls_total{carrier="car_1",status="completed",process="test"} 1',
  ])
  t.same(await sample('strowger_project_calls_total{project="prj_1",status="completed"'), [
    'strowger_project_calls_total{project="prj_1",status="completed",process="test"} 300',
  ])
  t.equal((await sample('strowger_trunk_call_seconds_total{')).length, 201, '200 trunks, and the rest together')
  t.match((await sample('strowger_trunk_calls_total{trunk="other"'))[0], /\} 100$/)

  after(3_600_000)
  made.ended({ ...CALL, trunk_id: 'trk_new' })
  t.equal((await sample('strowger_trunk_calls_total{trunk="trk_new"')).length, 1, 'a trunk after an idle one')
  t.same(await sample('strowger_trunk_calls_total{trunk="trk_0"'), [], 'whose series are gone')
})

t.test('figures of a leg are observed by its side, and a leg that heard nothing is not', async t => {
  const { made, sample } = metrics()
  made.measured(LEG)
  made.measured({ ...LEG, packets_lost: -3 })
  made.measured({ ...LEG, packets_received: 0, packets_lost: 0 })
  t.same(await sample('strowger_leg_mos_bucket{le="4.1"'), [
    'strowger_leg_mos_bucket{le="4.1",process="test",side="caller"} 0',
  ])
  for (const name of ['mos', 'jitter_seconds', 'loss_ratio'])
    t.match((await sample(`strowger_leg_${name}_count`))[0], / 2$/, name)
  t.match((await sample('strowger_leg_jitter_seconds_sum'))[0], / 0\.024$/)
  t.match((await sample('strowger_leg_loss_ratio_bucket{le="0"'))[0], / 1$/, 'duplicates are no loss')
  t.match((await sample('strowger_leg_loss_ratio_sum'))[0], / 0\.01$/)
})

t.test('promtool accepts the metrics, the alert rules and their cases', { skip: !PROMTOOL }, async t => {
  const { registry, made } = metrics()
  made.ended({ ...CALL, trunk_id: 'trk_1', carrier_id: 'car_1' })
  made.measured(LEG)
  const own = (await registry.metrics()).split('\n').filter(line => /^(# (HELP|TYPE) )?strowger_/.test(line))
  const run = (args: readonly string[], input = '') => execFileSync(PROMTOOL ?? '', args, { input, encoding: 'utf8' })
  t.equal(run(['check', 'metrics'], `${own.join('\n')}\n`), '')
  t.match(run(['check', 'rules', 'docker/prometheus/alerts.yml']), /SUCCESS: \d+ rules/)
  t.match(run(['test', 'rules', 'docker/prometheus/alerts.test.yml']), /SUCCESS/)
})
