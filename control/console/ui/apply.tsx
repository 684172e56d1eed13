import type { Trunk } from '../lib/types.ts'
import { Badge } from './basics.tsx'

/** Shows both the saved and the applied revision, because a saved change takes a moment to apply. */
export function ApplyBadge({ apply }: { apply: Trunk['apply'] }) {
  if (apply.state === 'applied') return <Badge tone="good">Applied · revision {apply.effective_revision}</Badge>
  if (apply.state === 'failed')
    return (
      <span title={apply.error ?? ''}>
        <Badge tone="bad">
          Revision {apply.desired_revision} failed · {apply.effective_revision} in force
        </Badge>
      </span>
    )
  return (
    <Badge tone="warn" busy>
      Applying revision {apply.desired_revision}
      {apply.effective_revision > 0 ? ` · ${apply.effective_revision} in force` : ''}
    </Badge>
  )
}

export const RevisionBadge = ({ desired, effective }: { desired: number; effective: number }) =>
  desired === effective ? (
    <Badge tone="good">Applied · revision {effective}</Badge>
  ) : (
    <Badge tone="warn" busy>
      Applying revision {desired}
    </Badge>
  )
