import { TrunkCredentials } from './trunk-credentials.tsx'
import { TrunkSources } from './trunk-sources.tsx'
import type { TrunkTab } from './trunk-tab.ts'
import { TrunkTargets } from './trunk-targets.tsx'

export const TrunkAccess = (props: TrunkTab) => (
  <>
    <TrunkSources {...props} />
    {props.trunk.authentication.mode === 'digest' && <TrunkCredentials {...props} />}
    <TrunkTargets {...props} />
  </>
)
