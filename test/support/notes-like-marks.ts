/** What an operator may write about a repayment, in the words with which the gateway once marked payments. */
export const NOTES_LIKE_MARKS = [
  'a reorganisation took the payment back',
  'repaid: a reorganisation took the payment back',
  'before a reorganisation took the payment back for a time',
  'nothing is owed: a reorganisation removed it',
  'the debt was repaid: ',
  'owed: settled by a transaction that this gateway did not send',
  'owed: settled after it was released',
] as const
