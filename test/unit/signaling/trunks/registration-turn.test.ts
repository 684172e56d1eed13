import pino from 'pino'
import { RegistrationTurn } from '../../../../signaling/trunks/registration-turn.ts'
import { admissionWorld, NOW_MS } from '../../../support/admission-world.ts'
import { standingClock } from '../../../support/clock.ts'
import t from '../../../support/harness/index.ts'

t.test('one of the nodes that share a state registers with carriers, and the turn passes on', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const clock = { ...standingClock(new Date(NOW_MS).toISOString()), every: () => ({ cancel: () => undefined }) }
  const node = (machine_id: string) => {
    const turns: boolean[] = []
    const one = { turns, drains: false, away: false }
    const transaction: typeof w.state.shortTransaction = work =>
      one.away ? Promise.reject(new Error('away')) : w.state.shortTransaction(work)
    const turn = new RegistrationTurn({
      ...{ machine: { machine_id, boot_id: 'boot' }, clock, log: pino({ level: 'silent' }) },
      state: { ...w.state, db: w.state.db, shortTransaction: transaction },
      draining: () => one.drains,
      changed: mine => void turns.push(mine),
    })
    return Object.assign(one, { turn })
  }
  const [a, b] = [node('mac_a'), node('mac_b')]
  const look = async (): Promise<boolean[]> => {
    for (const { turn } of [a, b]) await turn.look()
    return [a.turn.mine, b.turn.mine]
  }
  t.same(await look(), [true, false])
  clock.move(5_000)
  t.same(await look(), [true, false], 'while it is renewed')
  a.away = true
  clock.move(5_000)
  t.same(await look(), [true, false], 'a node that cannot read the state stays registered')
  clock.move(10_001)
  t.same(await look(), [true, true], 'a node that fell silent is replaced')
  a.away = false
  t.same(await look(), [false, true], 'and ends its registrations when it hears of it')
  b.drains = true
  await b.turn.look()
  t.same(await look(), [true, false], 'a node that drains passes the turn on')
  await a.turn.stop()
  b.drains = false
  await b.turn.look()
  t.equal(b.turn.mine, true, 'so does one that stops')
  t.same(
    [a.turns, b.turns],
    [
      [true, false, true],
      [true, false, true],
    ],
    'each change was told once',
  )
})
