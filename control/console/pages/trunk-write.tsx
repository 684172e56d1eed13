import { ask } from '../lib/api.ts'
import { useAction } from '../lib/data.ts'
import type { Problem } from '../lib/problem.ts'
import { may } from '../lib/session.ts'
import type { TrunkTab } from './trunk-tab.ts'

export const canWrite = () => may('service_configuration:write')

/** Sends writes below the trunk with its current revision. Reloads the trunk and the list after each. */
export function useTrunkWrite({ trunk, of }: TrunkTab, reload: () => void) {
  const action = useAction()
  const write = async <T,>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> => {
    const answer = await ask<T>(method, `/v1/trunks/${trunk.id}${path}`, {
      on: trunk,
      ...(body === undefined ? {} : { body }),
    })
    of.reload()
    reload()
    return answer
  }
  return { action, write }
}

/** Shows why a button of a table failed, when no dialog shows it. */
export const Failure = ({ of, shown }: { of: Problem | null; shown: boolean }) =>
  of && shown ? (
    <div class="body">
      <div class="notice bad" role="alert">
        <strong>{of.title}</strong>
        <span>{of.detail}</span>
      </div>
    </div>
  ) : null
