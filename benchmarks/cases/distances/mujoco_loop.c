// Distances of pairs of geoms and the rows n . (J_2 - J_1) at their nearest points, state after state.
#include <math.h>
#include <mujoco/mujoco.h>

void distances(const mjModel* m, mjData* d, const double* q, int states, const int* pairs, int count, double far,
               double* out, double* rows, double* jacobians) {
  int nv = m->nv;
  double *first = jacobians, *second = jacobians + 3 * nv;
  for (int s = 0; s < states; s++) {
    for (int i = 0; i < m->nq; i++) d->qpos[i] = q[s * m->nq + i];
    mj_kinematics(m, d);
    if (rows) mj_comPos(m, d);
    for (int k = 0; k < count; k++) {
      int a = pairs[2 * k], b = pairs[2 * k + 1];
      double ends[6], n[3], size = 0;
      double gap = mj_geomDistance(m, d, a, b, far, ends);
      out[s * count + k] = gap;
      if (!rows) continue;
      for (int i = 0; i < 3; i++) {
        n[i] = ends[3 + i] - ends[i];
        size += n[i] * n[i];
      }
      size = sqrt(size) * (gap < 0 ? -1 : 1);
      double* row = rows + ((size_t)s * count + k) * nv;
      int one = m->geom_bodyid[a], other = m->geom_bodyid[b];
      // what is fixed to the world has no Jacobian
      if (one) mj_jac(m, d, first, 0, ends, one);
      if (other) mj_jac(m, d, second, 0, ends + 3, other);
      for (int j = 0; j < nv; j++) {
        double sum = 0;
        for (int i = 0; i < 3; i++)
          sum += n[i] * ((other ? second[i * nv + j] : 0) - (one ? first[i * nv + j] : 0));
        row[j] = size != 0 ? sum / size : 0;
      }
    }
  }
}
