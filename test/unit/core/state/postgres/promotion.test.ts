import { isPassing } from '../../../../../core/state/index.ts'
import { claimNonce } from '../../../../../core/state/nodes/nonce-claims.ts'
import { openPostgres } from '../../../../../core/state/postgres/store.ts'
import t from '../../../../support/harness/index.ts'
import { primaryAndStandby } from '../../../../support/postgres.ts'
import { PATIENCE_MS, until } from '../../../../support/wait.ts'

// A synchronous standby takes the place of its primary in the middle of writes.

t.test('what was acknowledged is there after the standby took over, and the next write goes to it', async t => {
  const { url, breakOff, promote } = await primaryAndStandby(t)
  const state = await openPostgres({ database_url: url, migrates: 'anybody', busy_timeout_ms: PATIENCE_MS })
  t.teardown(() => state.close())
  const acknowledged: string[] = []
  let written = 0
  let stopping = false
  const write = async (): Promise<void> => {
    while (!stopping) {
      const nonce = `claim${String(written++).padStart(20, '0')}`
      try {
        await claimNonce(state.db, nonce, 0)
        acknowledged.push(nonce.slice(-24))
      } catch (error) {
        if (!isPassing(error)) throw error
      }
    }
  }
  const writing = Promise.all([write(), write(), write()])
  await until('much is written', () => acknowledged.length > 100)
  await breakOff()
  const before = acknowledged.length
  await promote()
  await until('writes go on', () => acknowledged.length > before + 100)
  stopping = true
  await writing
  const rows = await state.db.selectFrom('nonce_claim').select('mac').execute()
  const there = new Set(rows.map(({ mac }) => mac))
  t.same(
    acknowledged.filter(mac => !there.has(mac)),
    [],
  )
})
