import type { CallMessage } from '../../../../../core/domain/ladder/message.ts'
import { insertMessages } from '../../../../../core/state/calls/ladder.ts'
import { admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import t from '../../../../support/harness/index.ts'

t.test('stores SIP messages complete and in order, however many arrive together', async t => {
  const { state, close } = await admissionWorld()
  t.teardown(close)
  // 26 = 16 + 2 * 4 + 2 uses each statement size; 517 exceeds one batch.
  for (const count of [0, 1, 26, 517]) {
    const messages = Array.from(
      { length: count },
      (_, at): CallMessage => ({
        sip_call_id: `${count}@test`,
        at_ms: NOW_MS + at,
        direction: at % 2 === 0 ? 'in' : 'out',
        protocol: 'udp',
        local: '127.0.0.1:5060',
        remote: `127.0.0.1:${6000 + at}`,
        retransmission: at % 3 === 0 ? 1 : 0,
        text: `OPTIONS sip:${at}@test SIP/2.0`,
      }),
    )
    await insertMessages(state.db, { edge_id: 'mac_1', messages })
    const kept = await state.db
      .selectFrom('sip_message')
      .selectAll()
      .where('sip_call_id', '=', `${count}@test`)
      .orderBy('id')
      .execute()
    t.same(
      kept.map(({ id: _, ...row }) => row),
      messages.map(message => ({ ...message, edge_id: 'mac_1' })),
    )
  }
})
