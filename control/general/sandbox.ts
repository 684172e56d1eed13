import { newId } from '../../core/runtime/ids.ts'
import {
  findSimulatedCall,
  insertSimulatedCall,
  listSimulatedCalls,
  type SimulatedCallRow,
} from '../../core/state/calls/simulated-calls.ts'
import type { CallEnvironment, GeneralCall } from './environment.ts'
import { simulatedStatus } from './simulate.ts'

/** The sandbox: places no calls and costs nothing. Test numbers determine the outcome of a call. */
export const sandbox: CallEnvironment = {
  async create({ services, account, now_ms }, { to, message }) {
    const { project_id } = account
    const call = { id: newId.uuid(), project_id, to_number: to, message }
    return present(await insertSimulatedCall(services.state.db, call, now_ms), now_ms)
  },
  async find({ services, account, now_ms }, id) {
    const row = await findSimulatedCall(services.state.db, account.project_id, id)
    return row ? present(row, now_ms) : null
  },
  async list({ services, account, now_ms }, page) {
    const rows = await listSimulatedCalls(services.state.db, account.project_id, page)
    return rows.map(row => present(row, now_ms))
  },
}

const present = (row: SimulatedCallRow, now_ms: number): GeneralCall => ({
  id: row.id,
  status: simulatedStatus(row.to_number, now_ms - Date.parse(row.created_at)),
  to: row.to_number,
  created_at: row.created_at,
})
