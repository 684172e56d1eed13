const CARD_LIKE = /(?<![\d])\d(?:[ -]?\d){12,18}(?![\d])/g

/** Text with all but the last four digits of what may be a card number taken out: 13 to 19 digits that pass Luhn. */
export function maskCards(text: string): string {
  return text.replace(CARD_LIKE, found => {
    const digits = found.replace(/\D/g, '')
    return passesLuhn(digits) ? `${'*'.repeat(digits.length - 4)}${digits.slice(-4)}` : found
  })
}

/** ISO/IEC 7812-1 annex B. */
function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits[digits.length - 1 - place])
    const doubled = place % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}
