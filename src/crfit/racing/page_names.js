"use strict";
// Where to write the names of lines: at their ends, without covering each other (crfit.picture_names does the
// same for pictures).

const within = (value, [a, b]) => value >= Math.min(a, b) && value <= Math.max(a, b);

// Move numbers apart, and into an interval, by as little as possible and without changing their order. Those
// that are too close form a block around the mean of what they want; blocks that touch become one.
function spread(wanted, distance, low, high) {
  const blocks = [];
  const firstOf = (members) => {
    const mean = members.reduce((sum, i, k) => sum + wanted[i] - k * distance, 0) / members.length;
    return Math.min(Math.max(mean, low), high - (members.length - 1) * distance);
  };
  for (const i of [...wanted.keys()].sort((a, b) => wanted[a] - wanted[b])) {
    let members = [i];
    while (blocks.length && blocks.at(-1).first + blocks.at(-1).members.length * distance > firstOf(members)) {
      members = [...blocks.pop().members, ...members];
    }
    blocks.push({ members, first: firstOf(members) });
  }
  return blocks;
}

// Beside its end, or, where a name would cover the end of another line, it and its neighbours in a column to
// the right of them. `ends` have a place on the scale of the axes and the width of their name in pixels. Sets:
// the right end of the horizontal range, further out so that all names fit, unless it is fixed. Returns offsets
// from the ends in pixels.
function placeNames(ends, range, size, height, fixed) {
  const low = range.x[0];
  const after = ends.map((end) => end.x); // a name stands to the right of this
  let place = [];
  for (let round = 0; round < 2; round++) {
    for (const [i, end] of ends.entries()) {
      // (u - low) / (right - low) W + width <= W
      const right = low + ((after[i] - low) * size.width) / Math.max(size.width - end.width, size.width / 4);
      if (!fixed) range.x[1] = Math.max(range.x[1], right);
    }
    const across = (x) => ((x - low) / (range.x[1] - low)) * size.width;
    const down = (y) => ((range.y[1] - y) / (range.y[1] - range.y[0])) * size.height;
    const at = ends.map((end) => ({ x: across(end.x), y: down(end.y) }));
    const blocks = spread(at.map((point) => point.y), height, height / 2, size.height - height / 2);
    place = [];
    for (const { members, first } of blocks) {
      members.forEach((i, k) => {
        const left = Math.min(across(after[i]) + 12, size.width - ends[i].width + 12);
        place[i] = { left, middle: first + k * height, ax: left - at[i].x, ay: first + k * height - at[i].y };
      });
      const covers = members.some((i) =>
        at.some(
          ({ x, y }, j) =>
            i !== j &&
            within(x, [place[i].left - 6, place[i].left + ends[i].width]) &&
            Math.abs(y - place[i].middle) < 0.7 * height,
        ),
      );
      const furthest = Math.max(...members.map((i) => ends[i].x));
      if (covers) for (const i of members) after[i] = furthest;
    }
  }
  return place;
}
