import { compileRealms, type Realms } from '../../core/domain/identity/index.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { State } from '../../core/state/index.ts'
import { type Following, followConfiguration } from './follow-configuration.ts'

export interface DigestRealms extends Following {
  current(): Realms
}

/** Follows the realms of digest credentials, in which strangers are challenged. */
export async function watchRealms(state: Pick<State, 'db'>, log: Log): Promise<DigestRealms> {
  let realms = compileRealms([])
  const following = await followConfiguration(state, log, {
    failed: 'the realms of digest credentials cannot be read: those of before count',
    read: async () => {
      realms = compileRealms(
        await state.db
          .selectFrom('digest_credential')
          .leftJoin('trunk', 'trunk.id', 'digest_credential.trunk_id')
          .select(['digest_credential.realm', 'trunk.signaling_fqdn as host'])
          .where('digest_credential.enabled', '=', 1)
          .where('digest_credential.revoked_at', 'is', null)
          .execute(),
      )
    },
  })
  return { ...following, current: () => realms }
}
