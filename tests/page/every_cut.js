// Reads streams at every cut, in Node and in a browser alike.

/**
 * cases: `[{base64, most?, random?}]`; gives for each what one feeding of the whole means, as
 * `{events, lastEventId, retry, over}`, and `differing`: the ways to cut that mean something else (none, one hopes).
 */
export function everyCut(Decoder, cases) {
  return cases.map(({ base64, most, random = [] }) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const whole = read(Decoder, [bytes], most);
    const differing = [];
    const check = (name, pieces) => {
      if (JSON.stringify(read(Decoder, pieces, most)) !== JSON.stringify(whole)) differing.push(name);
    };
    check("bytes", [...bytes].map((byte) => Uint8Array.of(byte)));
    check("bytes, with nothing between", [...bytes].flatMap((byte) => [new Uint8Array(0), Uint8Array.of(byte)]));
    for (let at = 1; at < bytes.length; at++) check(`at ${at}`, [bytes.subarray(0, at), bytes.subarray(at)]);
    for (const cuts of random) check(`at ${cuts}`, pieces(bytes, cuts));
    return { ...whole, differing };
  });
}

function pieces(bytes, cuts) {
  const ends = [...cuts, bytes.length];
  return ends.map((end, number) => bytes.subarray(number === 0 ? 0 : ends[number - 1], end));
}

function read(Decoder, pieces, most) {
  const decoder = new Decoder(most === undefined ? {} : { most });
  const events = [];
  let over = false;
  for (const piece of pieces) {
    try {
      events.push(...decoder.feed(piece));
    } catch {
      over = true;
    }
  }
  return { events, lastEventId: decoder.lastEventId, retry: decoder.retry, over };
}
