// Pinocchio without Python: microseconds a state, of 128 random states in turn.
//
//     pinocchio_loop MACHINE SECONDS
//
// MACHINE has a line for each body: parent, axis (x, y or z as 0, 1, 2), rotation (9) and place (3) of the joint in the
// parent's frame, mass, center (3), inertia about it (6: xx, xy, yy, xz, yz, zz). Prints for each algorithm its time
// and a sum of its results, so that nothing is left out.
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <vector>

using namespace pinocchio;

static Model read(const char *path)
{
    Model model;
    std::ifstream file(path);
    int parent, axis;
    std::vector<JointIndex> ids;
    while (file >> parent >> axis) {
        Eigen::Matrix3d R, I;
        Eigen::Vector3d p, c;
        double m, s[6];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                file >> R(i, j);
        file >> p[0] >> p[1] >> p[2] >> m >> c[0] >> c[1] >> c[2];
        for (double &x : s)
            file >> x;
        I << s[0], s[1], s[3], s[1], s[2], s[4], s[3], s[4], s[5];
        JointModel joint = axis == 0 ? JointModel(JointModelRX()) : axis == 1 ? JointModel(JointModelRY()) : JointModel(JointModelRZ());
        ids.push_back(model.addJoint(parent < 0 ? 0 : ids[parent], joint, SE3(R, p), std::to_string(ids.size())));
        model.appendBodyToJoint(ids.back(), Inertia(m, c, I), SE3::Identity());
    }
    return model;
}

template <class F> static void measure(const char *name, double seconds, F f)
{
    using clock = std::chrono::steady_clock;
    const int states = 128;
    double total = 0;
    for (int i = 0; i < states; i++)
        total += f(i);
    std::vector<double> times;
    const auto start = clock::now();
    do {
        const auto begin = clock::now();
        for (int turn = 0; turn < 8; turn++)
            for (int i = 0; i < states; i++)
                total += f(i);
        times.push_back(std::chrono::duration<double>(clock::now() - begin).count() / (8 * states));
    } while (std::chrono::duration<double>(clock::now() - start).count() < seconds);
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    std::printf("%s %.6g %.17g\n", name, 1e6 * times[times.size() / 2], total);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const Model model = read(argv[1]);
    const double seconds = std::atof(argv[2]);
    Data data(model);
    std::mt19937 random(0);
    std::uniform_real_distribution<double> one(-1, 1);
    std::vector<Eigen::VectorXd> q(128), v(128), x(128);
    for (auto *list : {&q, &v, &x})
        for (auto &each : *list)
            each = Eigen::VectorXd::NullaryExpr(model.nv, [&]() { return one(random); });
    measure("inverse_dynamics", seconds, [&](int i) { return rnea(model, data, q[i], v[i], x[i])[0]; });
    measure("forward_dynamics", seconds, [&](int i) { return aba(model, data, q[i], v[i], x[i], Convention::LOCAL)[0]; });
    measure("mass_matrix", seconds, [&](int i) { crba(model, data, q[i], Convention::LOCAL); return data.M(0, 0); });
    measure("forward_dynamics_derivatives", seconds, [&](int i) {
        computeABADerivatives(model, data, q[i], v[i], x[i]);
        return data.ddq_dq.sum();
    });
    return 0;
}
