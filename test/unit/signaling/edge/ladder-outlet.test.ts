import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { systemClock } from '../../../../core/runtime/clock.ts'
import { insertMessages, type NewMessage } from '../../../../core/state/calls/ladder.ts'
import { openStateToRead } from '../../../../core/state/index.ts'
import type { TracedMessage } from '../../../../signaling/edge/index.ts'
import { Journal, readJournal } from '../../../../signaling/edge/journal.ts'
import { writeLadder } from '../../../../signaling/edge/ladder.ts'
import { openLadderOutlet } from '../../../../signaling/edge/ladder-outlet.ts'
import { keepLadder } from '../../../../signaling/ladder-keeper.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import { until } from '../../../support/wait.ts'

const log = pino({ level: 'silent' })

/** An edge's side of the link, and the state that the node's side writes. */
async function desk(t: Test, left: readonly NewMessage[] = [], there: readonly NewMessage[] = []) {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  await insertMessages(w.state.db, { edge_id: 'mac_1', messages: there })
  const path = join(w.data_dir, 'ladder.sock')
  const outlet = await openLadderOutlet(path, log)
  const journal = new Journal<NewMessage>(w.data_dir, error => t.fail(String(error)))
  const ladder = writeLadder(outlet, journal, left, systemClock)
  t.teardown(async () => {
    await ladder.close()
    outlet.close()
    journal.close()
  })
  const state = openStateToRead({ data_dir: w.data_dir })
  t.teardown(() => state.close())
  return {
    ...{ path, ladder, state, data_dir: w.data_dir },
    keeper: () => keepLadder({ path, db: w.state.db, edge_id: 'mac_1', log, clock: systemClock }),
    kept: async () =>
      (await state.db.selectFrom('sip_message').select('sip_call_id').orderBy('id').execute()).map(
        row => row.sip_call_id,
      ),
  }
}

const invite = (call_id: string): TracedMessage => ({
  ...{ direction: 'in', protocol: 'udp', retransmission: false, at: 1_000 },
  ...{ local: { host: '127.0.0.1', port: 5060 }, remote: { host: '127.0.0.2', port: 5060 } },
  text: `INVITE sip:x SIP/2.0\r\nCall-ID: ${call_id}\r\nCSeq: 1 INVITE\r\nSubject: \u2028\r\n\r\n`,
})

t.test('messages come to the state by the node; the edge only reads it', async t => {
  const { ladder, keeper, kept, state } = await desk(t)
  for (let n = 0; n < 1200; n++) ladder.keep(invite(`call-${n}`))
  const node = keeper()
  const rows = await until('all are kept', async () => {
    const found = await kept()
    return found.length >= 1200 && found
  })
  t.same(
    rows,
    Array.from({ length: 1200 }, (_, n) => `call-${n}`),
    'in their order',
  )
  await t.rejects(state.db.deleteFrom('sip_message').execute(), /readonly/)
  ladder.keep(invite('last'))
  await node.stop()
  t.equal((await kept()).at(-1), 'last', 'a node that stops takes what there is')
})

t.test('what a node took and did not confirm is kept once by the next one', async t => {
  const { ladder, keeper, kept, path, data_dir } = await desk(t)
  ladder.keep(invite('one'))
  const lost = connect(path)
  await once(lost, 'data')
  lost.destroy()
  t.match(readJournal(data_dir), [{ sip_call_id: 'one' }], 'until then it stands in the journal')
  const first = keeper()
  await until('it is kept', async () => (await kept()).length === 1)
  ladder.keep(invite('two'))
  await first.stop()
  t.same(await kept(), ['one', 'two'])
  await until('the journal is empty', () => readJournal(data_dir).length === 0)
})

t.test('what a killed edge had not handed over is kept once, whether it was there or not', async t => {
  const row = (sip_call_id: string): NewMessage => ({
    ...{ sip_call_id, at_ms: 1, direction: 'in', protocol: 'udp', retransmission: 0, text: 'INVITE' },
    ...{ local: '127.0.0.1:5060', remote: '127.0.0.2:5060' },
  })
  const { keeper, kept, ladder } = await desk(t, [row('left'), row('other')], [row('left')])
  const node = keeper()
  await until('they are kept', async () => (await kept()).includes('other'))
  ladder.keep(invite('new'))
  await node.stop()
  t.same(await kept(), ['left', 'other', 'new'])
})
