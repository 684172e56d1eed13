import { hrefOf, type PageProps } from '../../lib/router.ts'
import { Trail, TrailEvent } from '../audit.tsx'

const HOME = '/operator/audit'

/** The trail of the installation: every write of an operator. */
export const OperatorAudit = () => (
  <Trail
    api="/operator/v1"
    home={HOME}
    title="Audit of the installation"
    sub="What operators did, by key, command or browser, and with which reason."
  />
)

export const OperatorAuditEvent = ({ params }: PageProps) => (
  <TrailEvent
    api="/operator/v1"
    id={params['id'] ?? ''}
    back={{ href: hrefOf(HOME), text: 'Audit of the installation' }}
  />
)
