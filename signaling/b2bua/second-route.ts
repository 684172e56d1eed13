import type { Call } from './call.ts'
import type { HuntHop } from './hunt.ts'
import type { ScriptEntry } from './script-host.ts'

/** The second route of a number, for a call that no target of the first could take; `admission/` implements it. */
export type SecondRoute = () => Promise<Second>

type Second =
  | { readonly kind: 'hops'; readonly to: string; readonly hops: readonly HuntHop[] }
  | { readonly kind: 'script'; readonly to: string; readonly application_id: string; readonly entry: ScriptEntry }
  /** Why the call may not take it, as a sentence. */
  | { readonly kind: 'refused'; readonly to: string; readonly sentence: string }
  /** It leads nowhere: its target is gone, or cannot serve a call that we place. */
  | { readonly kind: 'none' }

/** Asks for the second route of a call. The events of the call tell what came of it. */
export async function takeSecondRoute(call: Call, second: SecondRoute): Promise<Second> {
  const found = await second().catch((err: unknown): Second => {
    call.log.error({ err }, 'a second route could not be taken')
    return { kind: 'none' }
  })
  if (found.kind === 'refused')
    call.event('warning', null, { detail: `The second route, ${found.to}, refuses the call: ${found.sentence}` })
  else if (found.kind !== 'none') call.event('state', null, { what: 'second_route', to: found.to })
  return found
}
