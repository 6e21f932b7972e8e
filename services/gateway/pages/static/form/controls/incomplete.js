/** An answer that cannot be taken yet; the message is for the signer. */
export class Incomplete extends Error {}
