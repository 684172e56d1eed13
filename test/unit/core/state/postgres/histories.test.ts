import { brokenInvariants } from '../../../../../core/state/maintenance/invariants.ts'
import { admissionWorld } from '../../../../support/admission-world.ts'
import t from '../../../../support/harness/index.ts'
import { live, prepareHistory, randomHistory, written } from '../../../../support/history.ts'
import { postgresState } from '../../../../support/postgres.ts'

// TEST_HISTORIES=200 runs that many, each from a seed of its own; `npm run bench -- cluster --only history` does it.
const HISTORIES = Number(process.env['TEST_HISTORIES'] ?? 2)
const STEPS = Number(process.env['TEST_HISTORY_STEPS'] ?? 40)

t.test('random histories give equal verdicts, counters, ledgers and CDRs on both stores', async t => {
  let refused = 0
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const worlds = [await admissionWorld(), await admissionWorld({}, postgresState)] as const
    for (const w of worlds) await prepareHistory(w)
    const history = randomHistory(worlds[0], seed, STEPS)
    const [ours, theirs] = [await live(worlds[0].state, history), await live(worlds[1].state, history)]
    t.same(theirs, ours, `results of history ${seed}`)
    t.same(await written(worlds[1].state), await written(worlds[0].state), `rows of history ${seed}`)
    t.same(await brokenInvariants(worlds[1].state.db), [], `invariants of history ${seed}`)
    refused += ours.filter(result => result.includes('"admitted":false')).length
    for (const w of worlds) await w.close()
  }
  t.ok(refused > 0, 'some calls met a ceiling')
})
