/** Why an offer or answer cannot be had; `detail` names what was found. */
export interface Refused<R extends string> {
  readonly refused: R
  readonly detail: string
}

export const refuse = <R extends string>(refused: R, detail: string): Refused<R> => ({ refused, detail })
