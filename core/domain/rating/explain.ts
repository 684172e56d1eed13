import { amountText, microText, rateText } from './amounts.ts'
import { billedMinor, billedSeconds } from './price.ts'
import { shownPrefix, type Tariff } from './types.ts'

/** Every input of a call's price, as stored in its record. */
export interface PriceInputs extends Tariff {
  readonly billing: 'rated' | 'free'
  readonly direction: 'outbound' | 'inbound'
  readonly destination: string
  readonly currency: string
  readonly price_book_id: string | null
  readonly price_book_revision: number | null
  readonly rate_prefix: string | null
  readonly rate_label: string | null
  /** Whole seconds from answer to end; an answered call of less than a second counts as one. */
  readonly duration_seconds: number
}

interface Price {
  readonly billed_seconds: number
  readonly charge_minor: number
}

/** Returns the price of an ended call. */
export function priceOf(inputs: PriceInputs): Price {
  const billed_seconds = billedSeconds(inputs, inputs.duration_seconds)
  return { billed_seconds, charge_minor: inputs.billing === 'free' ? 0 : billedMinor(inputs, billed_seconds) }
}

/** What an ended call cost. */
export interface CallCharge {
  readonly amount_minor: number
  readonly billed_seconds: number
  readonly currency: string
  readonly direction: 'outbound' | 'inbound'
}

/** What an ended call cost, as every surface shows it. */
export interface CallPrice extends CallCharge {
  /** Such as `4 s × ₦0.14/min = ₦0.01`. To write it takes fifty times as long as the charge. */
  readonly sentence: string
}

export function callCharge(inputs: PriceInputs): CallCharge {
  const { billed_seconds, charge_minor } = priceOf(inputs)
  const { currency, direction } = inputs
  return { amount_minor: charge_minor, billed_seconds, currency, direction }
}

export const callPrice = (inputs: PriceInputs): CallPrice => ({
  ...callCharge(inputs),
  sentence: priceSentence(inputs, priceOf(inputs)),
})

/** Says how the price of an ended call comes about, in one line. */
function priceSentence(inputs: PriceInputs, { billed_seconds, charge_minor }: Price): string {
  const { billing, duration_seconds, rate_prefix } = inputs
  const amount = amountText(charge_minor)
  if (duration_seconds === 0) return `not answered = ${amount}`
  if (rate_prefix === null)
    return `${duration_seconds} s${billing === 'free' ? ', free of charge in the sandbox' : ' without a rate'} = ${amount}`
  const seconds =
    billed_seconds === duration_seconds
      ? `${duration_seconds} s`
      : `${duration_seconds} s, billed as ${billed_seconds} s,`
  const sum = `${seconds} × ${rateText(inputs)}`
  return billing === 'free' ? `${sum}, free of charge in the sandbox = ${amount}` : `${sum} = ${amount}`
}

/** Explains the price line by line, so that a person can recompute it (`bin/strowger rate CA…`). */
export function explainPrice(inputs: PriceInputs): string[] {
  const price = priceOf(inputs)
  const { billed_seconds, charge_minor } = price
  return [
    `in short         ${priceSentence(inputs, price)}`,
    `${inputs.direction === 'inbound' ? 'called number    ' : 'destination      '}${inputs.destination}`,
    inputs.rate_prefix === null
      ? 'rate             none: the call is not billed'
      : `rate             ${shownPrefix(inputs.rate_prefix)} ${inputs.rate_label ?? ''} of price book ` +
        `${inputs.price_book_id ?? ''}, revision ${inputs.price_book_revision ?? ''}`,
    `duration         ${inputs.duration_seconds} s`,
    ...(inputs.rate_prefix === null
      ? []
      : [
          `price            ${rateText(inputs)}`,
          `increments       first ${inputs.increment_initial_seconds} s, then ${inputs.increment_additional_seconds} s`,
          `billed           ${billed_seconds} s`,
          `exact amount     ${exactText(inputs, billed_seconds)}`,
        ]),
    inputs.billing === 'free'
      ? 'charge           nothing: sandbox or test call'
      : `charge           ${amountText(charge_minor)}, rounded up once`,
  ]
}

function exactText({ rate_micro, rate_unit }: Tariff, billed: number): string {
  const sixtieths = BigInt(rate_micro) * BigInt(billed) * (rate_unit === 'second' ? 60n : 1n)
  const whole = sixtieths / 60n
  const rest = sixtieths % 60n
  return `${rest === 0n ? '' : 'a little over '}${microText(whole)}`
}

/** Formats millionths as a decimal number without trailing zeros. */
export function decimal(micro: bigint | number): string {
  const [whole, rest] = [BigInt(micro) / 1_000_000n, BigInt(micro) % 1_000_000n]
  const fraction = rest.toString().padStart(6, '0').replace(/0+$/, '')
  return fraction === '' ? String(whole) : `${whole}.${fraction}`
}
