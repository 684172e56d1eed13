import type { Route } from '../http/route.ts'
import { apiKeys } from './api-keys.ts'
import { invitations } from './invitations.ts'
import { members } from './members.ts'
import { passwordResets } from './password-resets.ts'
import { personalSecrets } from './secrets.ts'
import { sessions } from './sessions.ts'
import { telephone } from './telephone.ts'

/** Every endpoint of /console/api: the actions that need a person. */
export const CONSOLE_ROUTES: readonly Route[] = [
  ...sessions,
  ...apiKeys,
  ...members,
  ...invitations,
  ...passwordResets,
  ...personalSecrets,
  ...telephone,
]
