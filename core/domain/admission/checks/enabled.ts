import type { Reason } from '../../reasons/index.ts'
import { passed, refused } from '../findings.ts'
import type { Check, HolderFacts } from '../types.ts'

const REASON_OF: Readonly<Record<HolderFacts['kind'], Reason>> = {
  project: 'project_disabled',
  subaccount: 'subaccount_suspended',
  trunk: 'trunk_disabled',
  subtrunk: 'subtrunk_disabled',
}

export const enabled: Check = {
  name: 'enabled',
  reasons: ['project_disabled', 'subaccount_suspended', 'trunk_disabled', 'subtrunk_disabled'],
  asked: ['outbound', 'inbound', 'on_net'],
  decide({ holders }) {
    const disabled = holders.find(holder => !holder.enabled)
    if (disabled)
      return refused(REASON_OF[disabled.kind], { name: `"${disabled.name}"`, value: disabled.status, limit: 'enabled' })
    return passed(`${holders.map(holder => holder.kind).join(', ')} enabled`, 'enabled', 'enabled')
  },
}
