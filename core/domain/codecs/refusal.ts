/** Why an offer or answer is refused. `detail` names the fault. */
export interface Refused<R extends string> {
  readonly refused: R
  readonly detail: string
}

export const refuse = <R extends string>(refused: R, detail: string): Refused<R> => ({ refused, detail })
